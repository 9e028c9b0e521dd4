//go:build !js

package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
)

// logbook is the file in which a room keeps what was said: one message a line, the
// first of which is a welcome that names the room. It is written by one goroutine.
// What append has returned nil for survives the process.
type logbook struct{ file *os.File }

// openLogbook opens the file at path, which need not exist, tells restore of each
// line that was said, and returns the name of the room. A last line that was not
// written to its end is cut off: nobody was told that it was said.
func openLogbook(path string, restore func(message) error) (*logbook, string, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, "", err
	}
	l := &logbook{file}
	name, err := l.read(restore)
	if err != nil {
		file.Close()
		return nil, "", fmt.Errorf("log %s: %w", path, err)
	}
	return l, name, nil
}

func (l *logbook) read(restore func(message) error) (name string, err error) {
	var whole int64 // bytes of lines that are
	in := bufio.NewReaderSize(l.file, maxMessage)
	for n := 1; ; n++ {
		data, err := in.ReadSlice('\n')
		if err == io.EOF && n == 1 && !bytes.HasPrefix(data, []byte(`{"type":"welcome"`)) && len(data) > 0 {
			return "", errors.New("it is not a chat log")
		}
		if err == io.EOF {
			break // data is a line without an end
		}
		if err != nil {
			return "", fmt.Errorf("line %d: %w", n, err)
		}
		m, err := decode(bytes.TrimSpace(data))
		switch {
		case err != nil:
		case n == 1 && m.Type == "welcome":
			name = m.Room
		case n == 1 || m.Type != "line":
			err = fmt.Errorf("unexpected message %q", m.Type)
		default:
			err = restore(m)
		}
		if err != nil {
			return "", fmt.Errorf("line %d: %w", n, err)
		}
		whole += int64(len(data))
	}
	if err := l.file.Truncate(whole); err != nil {
		return "", err
	}
	if _, err := l.file.Seek(whole, io.SeekStart); err != nil {
		return "", err
	}
	if name == "" {
		name = rand.Text()
		return name, l.append(message{Type: "welcome", Room: name})
	}
	return name, nil
}

// append writes m at the end.
func (l *logbook) append(m message) error {
	if l == nil {
		return nil
	}
	_, err := l.file.Write(append(encode(m).Data, '\n'))
	return err
}

func (l *logbook) close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}
