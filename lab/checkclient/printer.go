package checkclient

import (
	"io"
	"sync"
	"time"
)

// printer writes the events of all sessions, up to a number of messages per second.
type printer struct {
	config *Config
	mu     sync.Mutex
	second time.Time // current second
	filled int
	hidden int // messages not printed since the last printed one
	failed error
}

// print prints an event if it is important or the second's limit is not reached.
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
		e.add("hidden_before", p.hidden) // number of messages not printed
	}
	p.hidden = 0
	p.filled++
	if _, err := io.WriteString(p.config.Out, line()); err != nil && p.failed == nil {
		p.failed = err
	}
}
