package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/health"
	"github.com/spanstatsd/spanstatsd/internal/shown"
	"github.com/spanstatsd/spanstatsd/internal/statustext"
)

// watch shows the status again and again until it is interrupted. A daemon that was
// there and is away is waited for: watching an upgrade is what this is for.
func watch(ctx context.Context, w io.Writer, source *statusSource, interval time.Duration,
	asJSON bool,
) error {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	inPlace := isTerminal(w) && !asJSON
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var last *health.Status
	for first := true; ; first = false {
		body, status, err := source.get(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if first {
			if err != nil {
				return err
			}
			if inPlace {
				fmt.Fprint(w, enterScreen)
				defer fmt.Fprint(w, leaveScreen)
			}
		}
		var text string
		if err != nil {
			text = fmt.Sprintf("%s  no answer: %s\n", time.Now().Format(time.TimeOnly),
				shown.Text(err.Error()))
		} else {
			text = statustext.Render(status, last, coloured(w))
			last = status
		}
		switch {
		case inPlace:
			err = drawFrame(w, text)
		case err == nil:
			err = writeStatus(w, asJSON, body, text+"\n")
		default:
			_, err = fmt.Fprint(os.Stderr, text)
		}
		if err != nil {
			return fmt.Errorf("write status: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// drawFrame puts a text over the last one, cut to the window.
func drawFrame(w io.Writer, text string) error {
	width, height := window(w)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	lines = lines[:min(len(lines), height)]
	var frame strings.Builder
	frame.WriteString(goHome)
	for i, line := range lines {
		frame.WriteString(cut(line, width))
		frame.WriteString(clearLine)
		if i < len(lines)-1 {
			frame.WriteString("\r\n")
		}
	}
	frame.WriteString(clearBelow)
	_, err := io.WriteString(w, frame.String())
	return err
}

// writeStatus shows one status.
func writeStatus(w io.Writer, asJSON bool, body []byte, text string) (err error) {
	if asJSON {
		_, err = w.Write(body)
	} else {
		_, err = io.WriteString(w, text)
	}
	return err
}
