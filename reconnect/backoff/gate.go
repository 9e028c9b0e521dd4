package backoff

import "context"

// Gate holds the dials to one host until they may begin. It paces them, and holds all of
// them when the host tells one of them to wait. It is the same interface as
// reconnect.Gate. It must be safe for concurrent use.
type Gate interface {
	// Acquire waits until a dial to host may begin, or until ctx ends. Unless it returns
	// an error, done is called exactly once, with the verdict on the dial: ClassOK if
	// it succeeded, ClassStop if that says nothing about the host.
	Acquire(ctx context.Context, host string) (done func(Verdict), err error)
}
