package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spanstatsd/spanstatsd/internal/health"
	"github.com/spanstatsd/spanstatsd/internal/shown"
	"golang.org/x/sys/unix"
)

// What a terminal is told: another screen and no cursor while watching, and
// back again after it.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	goHome      = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// watchStatus looks again and again until it is interrupted. A daemon that was
// there and is away is waited for: watching an upgrade is what this is for.
func (o *statusOptions) watchStatus(ctx context.Context, w io.Writer, source *statusSource) error {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	inPlace := isTerminal(w) && !o.asJSON
	ticker := time.NewTicker(o.interval)
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
			text = fmt.Sprintf("%s  no answer: %s\n", time.Now().Format(time.TimeOnly), shown.Text(err.Error()))
		} else {
			text = renderStatus(status, last, newPaint(w))
			last = status
		}
		switch {
		case inPlace:
			err = drawFrame(w, text)
		case err == nil:
			err = o.write(w, body, text+"\n")
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

// window is the size of a terminal, or a usual one.
func window(w io.Writer) (width, height int) {
	if file, ok := fileOf(w); ok {
		if size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 && size.Row > 0 {
			return int(size.Col), int(size.Row)
		}
	}
	return 80, 24
}

// cut keeps as much of a line as fits. Our own colour sequences take no room,
// and are kept, so that a colour that began also ends.
func cut(line string, width int) string {
	var kept strings.Builder
	for used := 0; line != ""; {
		if strings.HasPrefix(line, "\x1b[") {
			end := strings.IndexByte(line, 'm') + 1
			if end == 0 {
				break
			}
			kept.WriteString(line[:end])
			line = line[end:]
			continue
		}
		_, size := utf8.DecodeRuneInString(line)
		if used < width {
			kept.WriteString(line[:size])
			used++
		}
		line = line[size:]
	}
	return kept.String()
}
