package classic

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/span"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Celery is get_exponential_backoff_interval of Celery's current source, with the
// defaults of its tasks (retry_backoff=True):
//
//	c = min(Maximum, Factor*2^n); randrange(c+1) whole seconds
//
// The cap comes first and the jitter after it, so that the cap itself is only one of c+1
// equally likely waits; 0 is another. A negative Factor is an error in Celery and means no
// wait here.
type Celery struct {
	Factor   int  // in seconds; default 1; negative: no wait
	Maximum  int  // in seconds; default 600; negative: no wait
	NoJitter bool // retry_jitter=False: c itself
}

// Next returns the wait, and never gives up.
func (c *Celery) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	limit := seconds(c.Maximum, 600)
	d := span.Grow(seconds(c.Factor, 1), 2, a.N, limit)
	if !c.NoJitter {
		d = wholeSeconds(r, d)
	}
	return backoff.Step{Wait: d}, true
}

// CeleryOld is the same function in an older release:
//
//	min(Maximum, randrange(Factor*2^n + 1)) whole seconds
//
// The jitter comes first and the cap after it, so that a herd gathers at the cap: with 1
// and 30 s, 54 % of the waits n = 6 are exactly 30 s, and 97 % of the waits n = 10.
type CeleryOld Celery

// Next returns the wait, and never gives up.
func (c *CeleryOld) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	d := span.Grow(seconds(c.Factor, 1), 2, a.N, longestWhole)
	if !c.NoJitter {
		d = wholeSeconds(r, d)
	}
	return backoff.Step{Wait: min(d, seconds(c.Maximum, 600))}, true
}

const longestWhole = span.Longest / time.Second * time.Second

// seconds returns n seconds, or other if n is 0.
func seconds(n, other int) time.Duration {
	if n == 0 {
		n = other
	}
	return time.Duration(min(max(int64(n), 0), int64(longestWhole/time.Second))) * time.Second
}

// wholeSeconds draws whole seconds from 0 to d, both included.
func wholeSeconds(r *rand.Rand, d time.Duration) time.Duration {
	return span.Uniform(r, 0, d/time.Second+1) * time.Second
}
