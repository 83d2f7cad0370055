package checkclient

import (
	"io"
	"sync"
	"time"
)

// printer writes events, of all sessions, so many messages in a second and no more.
type printer struct {
	config *Config
	mu     sync.Mutex
	second time.Time // the one that is being filled
	filled int
	hidden int // messages since one was printed
	failed error
}

// print prints an event, if it is an important one or there is room for it.
func (p *printer) print(e *event, isImportant bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.config.Now().Truncate(time.Second); !now.Equal(p.second) {
		p.second, p.filled = now, 0
	}
	if !isImportant && (p.config.Quiet || p.filled >= p.config.PerSecond) {
		p.hidden++
		return
	}
	line := e.text
	if p.config.JSON {
		line = e.json
	}
	if p.hidden > 0 && !p.config.Quiet {
		e.add("hidden_before", p.hidden) // messages
	}
	p.hidden = 0
	p.filled++
	if _, err := io.WriteString(p.config.Out, line()); err != nil && p.failed == nil {
		p.failed = err
	}
}
