package socket

import (
	"log/slog"
	"time"
)

// watchEvery is how often the socket's file is looked for.
const watchEvery = time.Second

// Watch makes the socket again when somebody removes its file, until stop is closed: a daemon
// that nobody can find would seem well for ever. If it can't make the socket, the reason is
// logged once, and Lack says so.
func (l *Listener) Watch(stop <-chan struct{}, log *slog.Logger) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			l.look(log)
		case <-stop:
			return
		}
	}
}

// look looks for the file once.
func (l *Listener) look(log *slog.Logger) {
	restored, err := l.restore()
	l.mu.Lock()
	known := l.lack
	l.lack = err
	l.mu.Unlock()
	switch {
	case err != nil && (known == nil || known.Error() != err.Error()):
		log.Error("the socket is gone and can't be made again, so tracers can't connect; it is tried every "+
			"second",
			"socket", l.config.Path, "error", err)
	case restored:
		log.Warn("the socket was gone and is made again; look for what removes it", "socket", l.config.Path)
	}
}

// Lack is why tracers can't find the socket, nil where they can.
func (l *Listener) Lack() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lack
}
