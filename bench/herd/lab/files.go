package lab

import "fmt"

// spareFiles are those that a process needs beside its sockets.
const spareFiles = 200

// CheckFiles returns a [FilesError] if a process that may have limit files cannot have
// n clients, each with so many sockets.
func CheckFiles(what string, n, sockets int, limit uint64) error {
	need := uint64(n)*uint64(sockets) + spareFiles
	if need <= limit {
		return nil
	}
	most := uint64(0)
	if limit > spareFiles {
		most = (limit - spareFiles) / uint64(sockets)
	}
	return &FilesError{What: what, Need: need, Limit: limit, Most: most}
}

// FilesError reports that the limit on open files is too low.
type FilesError struct {
	What  string // for what
	Need  uint64 // open files in one process
	Limit uint64 // the highest that this process may have
	Most  uint64 // clients for which that would do
}

func (e *FilesError) Error() string {
	return fmt.Sprintf("%s needs %d open files in one process, and %d are allowed here: take at most %d, or raise the limit (ulimit -Hn %d, as root)",
		e.What, e.Need, e.Limit, e.Most, e.Need)
}
