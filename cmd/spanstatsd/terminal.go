package main

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// isTerminal tells a terminal from a file or a pipe.
func isTerminal(w io.Writer) bool {
	file, ok := fileOf(w)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// coloured says whether this is a terminal that shows colours and whose user did not ask for none.
func coloured(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Control sequences for a terminal: another screen without a cursor while watching, and back
// again afterwards.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	goHome      = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// window is the size of a terminal, or a usual one.
func window(w io.Writer) (width, height int) {
	if file, ok := fileOf(w); ok {
		if size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 &&
			size.Row > 0 {
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
