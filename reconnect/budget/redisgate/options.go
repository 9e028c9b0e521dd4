package redisgate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redial-go/redial/reconnect/budget"
)

// Options are the options of [New]. All processes of a fleet must use the same ones, and must not
// share a Key otherwise. At least one of Rate and Slots must be set.
type Options struct {
	// Key names the limit in Redis. All keys begin with "redisgate:{Key}:", so that they are in one
	// slot of a cluster. It must not be empty, contain a brace, or be longer than 200 bytes.
	Key string

	// Rate is the limit on the dials of all processes: at most N begin in any interval of the
	// length Per. Per must be at least 10 ms. Default: no such limit.
	Rate budget.Window

	// Slots is how many dials of all processes may be under way at a time. Default: no such limit.
	Slots int

	// Local is what this process may do while Redis cannot be asked. If the shares of all processes
	// together are not more than Rate.N, the limit holds then as well.
	Local Share

	// Lease is how long Redis keeps the slots of a process that is silent, such as one that was
	// killed. A process that holds slots renews them twice a second. At least 5 s, and at
	// least 4 times Timeout. Default 15 s, or 4 times Timeout if that is longer.
	Lease time.Duration

	// Hold is how long a dial may hold a slot. After that the slot is given back, although the dial
	// goes on. At least Lease. Default 5 minutes.
	Hold time.Duration

	// Slack is how old a permit may be when it is used, counted from the question to Redis. An
	// older one is void. The window in Redis is longer than Rate.Per by Slack, which costs that share
	// of the rate. It should be several round-trips to Redis. Less than Rate.Per.
	// Default: a twentieth of Rate.Per, but at least 5 ms and at most 1 s; without a Rate, 1 s.
	Slack time.Duration

	// Timeout is the limit on one question to Redis. After that Redis counts as away. A long one
	// means a long wait before the share is used, and a long pause when Redis is back. At least
	// Slack, and at most 10 s and a quarter of Lease. Default 500 ms, or Slack if that is longer.
	Timeout time.Duration

	// Away is called when Redis cannot be asked any more, with the reason, and when it can, with
	// nil. It is called in a goroutine of the Limiter, one call at a time, and must not block: the
	// Limiter waits for it. Default: nothing is called.
	Away func(err error)

	// Rand is the source of the jitter, used under a lock. Default: random.
	Rand rand.Source
}

// Share is what one process may do while Redis cannot be asked.
type Share struct {
	// N dials may begin in any interval of the length Rate.Per. At most Rate.N.
	// Default: a tenth of Rate.N, but at least 1.
	N int

	// Slots is how many dials may be under way, those included that began before. At most
	// Options.Slots. Default: a tenth of Options.Slots, but at least 1.
	Slots int
}

// withDefaults returns the options with their defaults, or the error that names what is wrong.
func (o Options) withDefaults() (Options, error) {
	if err := o.validate(); err != nil {
		return o, err
	}
	if o.Slack == 0 {
		o.Slack = time.Second
		if o.Rate.N > 0 {
			o.Slack = min(max(o.Rate.Per/20, 5*time.Millisecond), time.Second)
		}
	}
	if o.Timeout == 0 {
		o.Timeout = max(500*time.Millisecond, o.Slack)
	}
	shortest := 4 * o.Timeout // two lags: the alarm of the script is then longer than any holder is silent by itself
	if o.Lease == 0 {
		o.Lease = max(15*time.Second, shortest)
	}
	if o.Hold == 0 {
		o.Hold = max(5*time.Minute, o.Lease)
	}
	if o.Local.N == 0 && o.Rate.N > 0 {
		o.Local.N = max(1, o.Rate.N/10)
	}
	if o.Local.Slots == 0 && o.Slots > 0 {
		o.Local.Slots = max(1, o.Slots/10)
	}
	switch {
	case o.Lease < shortest:
		return o, fmt.Errorf("redisgate: Options.Lease: %v is less than 4 times Timeout, %v", o.Lease, o.Timeout)
	case o.Hold < o.Lease:
		return o, fmt.Errorf("redisgate: Options.Hold: %v is less than Lease, %v", o.Hold, o.Lease)
	case o.Timeout < o.Slack:
		return o, fmt.Errorf("redisgate: Options.Timeout: %v is less than Slack, %v", o.Timeout, o.Slack)
	}
	return o, nil
}

// mostDials is the largest Rate.N and Slots, so that all numbers are exact in the script.
const mostDials = 1 << 30

// longestPer is the longest Rate.Per.
const longestPer = 30 * 24 * time.Hour

func (o Options) validate() error {
	switch {
	case o.Key == "":
		return errors.New("redisgate: Options.Key is empty")
	case strings.ContainsAny(o.Key, "{}"):
		return fmt.Errorf("redisgate: Options.Key: %.200q contains a brace", o.Key)
	case len(o.Key) > 200:
		return fmt.Errorf("redisgate: Options.Key is longer than 200 bytes: %d", len(o.Key))
	case o.Rate.N < 0:
		return fmt.Errorf("redisgate: Options.Rate.N: %d is negative", o.Rate.N)
	case o.Rate.N == 0 && o.Rate.Per != 0:
		return errors.New("redisgate: Options.Rate.Per without N")
	case o.Rate.N > 0 && o.Rate.Per < 10*time.Millisecond:
		return fmt.Errorf("redisgate: Options.Rate.Per: %v is less than 10ms", o.Rate.Per)
	case o.Rate.Per > longestPer:
		return fmt.Errorf("redisgate: Options.Rate.Per: %v is more than 30 days", o.Rate.Per)
	case o.Slots < 0:
		return fmt.Errorf("redisgate: Options.Slots: %d is negative", o.Slots)
	case o.Rate.N > mostDials || o.Slots > mostDials:
		return fmt.Errorf("redisgate: Options.Rate.N or Slots is more than %d", mostDials)
	case o.Rate.N == 0 && o.Slots == 0:
		return errors.New("redisgate: neither Options.Rate nor Slots is set")
	case o.Local.N < 0 || o.Local.N > o.Rate.N:
		return fmt.Errorf("redisgate: Options.Local.N: %d is not between 0 and Rate.N, %d", o.Local.N, o.Rate.N)
	case o.Local.Slots < 0 || o.Local.Slots > o.Slots:
		return fmt.Errorf("redisgate: Options.Local.Slots: %d is not between 0 and Slots, %d", o.Local.Slots, o.Slots)
	case o.Lease < 0 || o.Lease != 0 && o.Lease < 5*time.Second:
		return fmt.Errorf("redisgate: Options.Lease: %v is less than 5s", o.Lease)
	case o.Hold < 0:
		return fmt.Errorf("redisgate: Options.Hold: %v is negative", o.Hold)
	case o.Slack < 0:
		return fmt.Errorf("redisgate: Options.Slack: %v is negative", o.Slack)
	case o.Rate.N > 0 && o.Slack >= o.Rate.Per:
		return fmt.Errorf("redisgate: Options.Slack: %v is not less than Rate.Per, %v", o.Slack, o.Rate.Per)
	case o.Timeout < 0 || o.Timeout > 10*time.Second:
		return fmt.Errorf("redisgate: Options.Timeout: %v is not between 0 and 10s", o.Timeout)
	}
	return nil
}

// window is the interval that Redis counts in: so long after a permit was given, nothing that was
// given before it is in use. 0 without a Rate.
func (o *Options) window() time.Duration {
	if o.Rate.N == 0 {
		return 0
	}
	return o.Rate.Per + o.Slack
}

// retryEvery is how long after a question that fails the next one follows, at most, unless it takes longer
// to fail. Slots are renewed as often.
const retryEvery = 500 * time.Millisecond

// lag is how long after the return of Redis the last process has noticed it: a question that came too
// early fails, and the next one is answered.
func (o *Options) lag() time.Duration { return max(retryEvery, o.Timeout) + o.Timeout }

// round is how long the dials that are free are shared among the processes that come for them.
func (o *Options) round() time.Duration {
	if o.Rate.N == 0 {
		return 50 * time.Millisecond
	}
	return min(max(o.window()/20, 10*time.Millisecond), 250*time.Millisecond)
}

// jitter is the most that is added to a wait that Redis has told.
func (o *Options) jitter() time.Duration {
	return min(max(o.window()/100, time.Millisecond), 20*time.Millisecond)
}
