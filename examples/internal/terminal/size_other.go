//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package terminal

import "os"

// Is reports whether stream is a file that is a terminal, or another device of characters.
func Is(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// columns returns 80, because it cannot ask the terminal on this system.
func columns(*os.File) int { return 80 }
