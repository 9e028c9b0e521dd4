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

// logFile is the file in which a room keeps its lines: one message per line, the first of
// which is a welcome with the name of the room. One goroutine writes it. When append has
// returned nil, the line survives the process. A nil logFile keeps nothing.
type logFile struct{ file *os.File }

// openLogFile opens or creates the file at path, calls restore with each line in it, and
// returns the name of the room. It cuts off an incomplete last line, because the room has not
// acknowledged that.
func openLogFile(path string, restore func(message) error) (*logFile, string, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, "", err
	}
	l := &logFile{file}
	name, err := l.read(restore)
	if err != nil {
		file.Close()
		return nil, "", fmt.Errorf("log %s: %w", path, err)
	}
	return l, name, nil
}

func (l *logFile) read(restore func(message) error) (name string, err error) {
	var whole int64 // bytes of complete lines
	in := bufio.NewReaderSize(l.file, maxMessage)
	for n := 1; ; n++ {
		data, err := in.ReadSlice('\n')
		if err == io.EOF && n == 1 && !bytes.HasPrefix(data, []byte(`{"type":"welcome"`)) && len(data) > 0 {
			return "", errors.New("it is not a chat log")
		}
		if err == io.EOF {
			break // data is an incomplete line
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

// append writes m at the end of the file.
func (l *logFile) append(m message) error {
	if l == nil {
		return nil
	}
	_, err := l.file.Write(append(encode(m).Data, '\n'))
	return err
}

func (l *logFile) close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}
