package lab

import "fmt"

// spareFiles are those that a process needs beside its sockets.
const spareFiles = 200

// CheckFiles raises the limit on open files of this process to the highest that it may have, and returns
// an error if the process cannot have n clients then, each with so many sockets.
func CheckFiles(what string, n, sockets int) error {
	limit, err := raiseFiles()
	if err != nil {
		return err
	}
	return checkFiles(what, n, sockets, limit)
}

func checkFiles(what string, n, sockets int, limit uint64) error {
	need := uint64(n)*uint64(sockets) + spareFiles
	if need <= limit {
		return nil
	}
	most := max(int64(limit)-spareFiles, 0) / int64(sockets)
	return fmt.Errorf("%s needs %d open files in one process, and %d are allowed here: take at most %d, or raise the limit (ulimit -Hn %d, as root)",
		what, need, limit, most, need)
}
