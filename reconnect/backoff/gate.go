package backoff

import "context"

// Gate is where those who dial one host wait for leave: it paces them, and holds
// all when the host told one of them to wait. Any reconnect.Gate is one, and the
// other way round. It must be safe for concurrent use.
type Gate interface {
	// Acquire waits until a dial to host may begin, or until ctx ends. Without an
	// error done is called exactly once, with how the dial went, by the classes
	// that [Budget] explains.
	Acquire(ctx context.Context, host string) (done func(Verdict), err error)
}

// open is the Gate of those who have none.
type open struct{}

func (open) Acquire(context.Context, string) (func(Verdict), error) { return ignore, nil }
