package storm

import (
	"context"
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
		most, err := recovers(ctx, o, seeds, each)
		if err != nil {
			return b, err
		}
		if most {
			low, b.Longest = middle, o.Stop
		} else {
			high, b.Shortest = middle, o.Stop
		}
	}
	return b, nil
}

// recovers reports whether most of the seeds recover.
func recovers(ctx context.Context, o Options, seeds int, each func()) (bool, error) {
	did := 0
	for range seeds {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		y, err := Run(o)
		if err != nil {
			return false, err
		}
		if y.Recovered {
			did++
		}
		if each != nil {
			each()
		}
		o.Seed++
	}
	return 2*did > seeds, nil
}
