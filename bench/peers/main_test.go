package main

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if IsChild() {
		os.Exit(ChildMain())
	}
	goleak.VerifyTestMain(m)
}

// local is a client in this process, which the race detector sees.
type local struct{ role }

func (l *local) do(ctx context.Context, o order) (answer, error) { return l.role.do(ctx, o) }

func (l *local) end() { l.close() }

// short are options that measure little, in one round, with clients in this process.
func short(rows ...string) Options {
	return Options{Rows: rows, Rounds: 1, sizes: shortSizes, client: func() (worker, error) { return new(local), nil }}
}
