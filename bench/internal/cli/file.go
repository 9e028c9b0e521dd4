package cli

import (
	"fmt"
	"io"
	"os"
)

// CheckFile reports whether a file can be written, before there is something to lose. What
// is in it stays.
func CheckFile(path string) error {
	if path == "" || path == "-" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	return f.Close()
}

// WriteFile writes to a file, to standard output for "-", and nothing for "".
func WriteFile(c *Console, path string, write func(io.Writer) error) error {
	switch path {
	case "":
		return nil
	case "-":
		return write(c.Out)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = write(f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
