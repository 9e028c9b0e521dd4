package budget

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"
)

// LoginFile is the path of a file that is a [LoginStore]. The file has a line of about 30 bytes for each login,
// and checksums (CRC-32C, RFC 3720) of each line and of the whole. Save writes and syncs a file with ".new"
// added to its name, and renames it. The directory must exist.
//
// Deleting the file makes the budget full. If it is truncated or any bit has changed since Save, the error is
// [ErrDamaged], and names the file and the number of verified logins.
//
// No two processes may use one file at a time: see [ErrOtherWriter].
type LoginFile string

const loginHead = "logins 1\n"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Load implements [LoginStore].
func (f LoginFile) Load() ([]time.Time, error) {
	data, err := os.ReadFile(string(f))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	var times []time.Time
	for line := range bytes.Lines(data) {
		if at, ok := parseLogin(line); ok {
			times = append(times, at)
		}
	}
	if !bytes.Equal(data, formatLogins(times)) {
		return times, fmt.Errorf("%w: file %s, of which %d logins can be verified", ErrDamaged, string(f), len(times))
	}
	return times, nil
}

// Save implements [LoginStore].
func (f LoginFile) Save(times []time.Time) error {
	next := string(f) + ".new"
	if err := writeThrough(next, formatLogins(times)); err != nil {
		return err
	}
	if err := os.Rename(next, string(f)); err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(string(f)))
}

// formatLogins returns the content of the file.
func formatLogins(times []time.Time) []byte {
	data := []byte(loginHead)
	for _, at := range times {
		data = append(data, formatLogin(at)...)
	}
	return fmt.Appendf(data, "end %08x\n", crc32.Checksum(data, castagnoli))
}

// formatLogin returns the line of a login: its time, in nanoseconds since 1970, and the checksum of that.
func formatLogin(at time.Time) []byte {
	text := strconv.AppendInt(nil, at.UnixNano(), 10)
	return fmt.Appendf(text, " %08x\n", crc32.Checksum(text, castagnoli))
}

// parseLogin returns the time of a line, if the line is just what formatLogin writes.
func parseLogin(line []byte) (time.Time, bool) {
	text, _, _ := bytes.Cut(line, []byte(" "))
	ns, err := strconv.ParseInt(string(text), 10, 64)
	at := time.Unix(0, ns)
	return at, err == nil && slices.Equal(line, formatLogin(at))
}

// writeThrough writes a file, and waits until it is on the disk.
func writeThrough(name string, data []byte) (err error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Write(data); err != nil {
		return err
	}
	return file.Sync()
}

// syncDirectory waits until the names in a directory are on the disk, where a system can do that.
func syncDirectory(name string) error {
	if runtime.GOOS == "windows" || runtime.GOOS == "js" {
		return nil
	}
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
