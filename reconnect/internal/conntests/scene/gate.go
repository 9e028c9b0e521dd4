package scene

import (
	"context"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Gate is a Gate that holds everybody for a second, and notes what is called.
type Gate struct{ Notes }

func (g *Gate) Acquire(ctx context.Context, host string) (func(backoff.Verdict), error) {
	g.Add("acquire " + host)
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return func(v backoff.Verdict) { g.Add("done " + v.Class.String()) }, nil
}

// RefusingGate is a Gate that fails with the error of the function, unless that is nil.
type RefusingGate func() error

func (f RefusingGate) Acquire(context.Context, string) (func(backoff.Verdict), error) {
	if err := f(); err != nil {
		return nil, err
	}
	return func(backoff.Verdict) {}, nil
}

// VerdictGate is a Gate that lets everybody through, and keeps each verdict.
type VerdictGate struct{ List []backoff.Verdict }

func (v *VerdictGate) Acquire(context.Context, string) (func(backoff.Verdict), error) {
	return func(got backoff.Verdict) { v.List = append(v.List, got) }, nil
}
