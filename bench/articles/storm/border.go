package storm

import (
	"context"
	"slices"
	"time"
)

// Border is how long a server may be stopped so that it still recovers.
type Border struct {
	Client   Client
	Longest  time.Duration // the longest stop after which most runs recovered; 0: none was that short
	Shortest time.Duration // the shortest after which most did not; 0: none was that long
}

// FindBorder looks for the border by halving between 0 and longest, to a step, with
// so many seeds per stop from o.Seed on; o.Stop does not matter. It assumes that
// there is one border. Each is called after each run; nil is allowed. When ctx ends
// it returns how far it got, with the context's cause.
func FindBorder(ctx context.Context, o Options, longest, step time.Duration, seeds int, each func()) (Border, error) {
	b := Border{Client: o.Client}
	low, high := 0, int(longest/step)+1 // in steps: at low it recovers, at high it does not, as far as is known
	for high-low > 1 {
		middle := (low + high) / 2
		o.Stop = time.Duration(middle) * step
		backs, err := Backs(ctx, o, seeds, each)
		if err != nil {
			return b, err
		}
		if 2*len(backs) > seeds {
			low, b.Longest = middle, o.Stop
		} else {
			high, b.Shortest = middle, o.Stop
		}
	}
	return b, nil
}

// Backs runs o with so many seeds from o.Seed on, and returns for each run that recovers how long that
// took, the shortest first. It calls each after each run; nil is allowed. When ctx ends it returns its
// cause.
func Backs(ctx context.Context, o Options, seeds int, each func()) (all []time.Duration, err error) {
	for range seeds {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		y, err := Run(o)
		if err != nil {
			return nil, err
		}
		if y.Recovered {
			all = append(all, y.Back)
		}
		if each != nil {
			each()
		}
		o.Seed++
	}
	slices.Sort(all)
	return all, nil
}
