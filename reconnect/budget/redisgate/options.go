package redisgate

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redial-go/redial/reconnect/budget"
)

// Options are the options of [New]. All processes of a fleet must use the same Options. Processes with
// other Options must use another Key. At least one of Rate and Slots must be set.
type Options struct {
	// Key names the limit in Redis. All keys begin with "redisgate:{Key}:", so that they are in one
	// slot of a cluster. It must not be empty, contain a brace, or be longer than 200 bytes.
	Key string

	// Rate is the limit on the dials of all processes: at most N begin in any interval of the
	// length Per. Per must be at least 10 ms and at most 30 days, and N at most 2^30. Default: no such
	// limit.
	Rate budget.Window

	// Slots is how many dials of all processes may be in progress at a time. At most 2^30. Default: no such
	// limit.
	Slots int

	// Local limits this process while Redis cannot be asked. If the shares of all processes
	// together are not more than Rate.N, the limit holds then as well.
	Local Share

	// Lease is how long Redis keeps the slots of a silent process, such as a process that was
	// killed. A process that holds slots renews them twice a second. At least 5 s and
	// 4 times Timeout, and at most 30 days. Default: 15 s, or 4 times Timeout if that is longer.
	Lease time.Duration

	// Slack is how old a permit may be when it is used, counted from the question to Redis. An
	// older permit is void. The window in Redis is longer than Rate.Per by Slack, which costs that share
	// of the rate. Slack should be several round-trips to Redis, and must be less than Rate.Per and
	// at most 10 s.
	// Default: a twentieth of Rate.Per, but at least 5 ms and at most 1 s; without a Rate, 1 s.
	Slack time.Duration

	// Timeout is the limit on one question to Redis. After that Redis counts as away. A long Timeout
	// means a long wait before the share is used, and a long pause when Redis is back. At least
	// Slack, and at most 10 s and a quarter of Lease. Default: 500 ms, or Slack if that is longer.
	Timeout time.Duration

	// Away is called with the reason when Redis cannot be asked any more, and with nil when Redis can
	// be asked again. It is called in a goroutine of the Limiter, one call at a time, and must not block: the
	// Limiter waits for it. Default: nothing is called.
	Away func(err error)

	// Differ is called with an error when another process has asked with the same Key and another Rate or
	// other Slots, and with nil when no process has done so for a minute. The error says both limits. Each
	// process goes on with its own limit, so that no limit holds for the fleet. It is called like Away. Default: nothing is called.
	Differ func(err error)
}

// Share limits one process while Redis cannot be asked.
type Share struct {
	// N dials may begin in any interval of the length Rate.Per. At most Rate.N.
	// Default: a tenth of Rate.N, but at least 1.
	N int

	// Slots is how many dials may be under way, those included that began before. At most
	// Options.Slots. Default: a tenth of Options.Slots, but at least 1.
	Slots int
}

// withDefaults returns the options with their defaults, or the error that names the wrong option.
func (o Options) withDefaults() (Options, error) {
	const day = 24 * time.Hour
	if o.Slack == 0 {
		o.Slack = time.Second
		if o.Rate.N > 0 {
			o.Slack = min(max(o.Rate.Per/20, 5*time.Millisecond), time.Second)
		}
	}
	o.Timeout = cmp.Or(o.Timeout, max(500*time.Millisecond, o.Slack))
	shortest := max(5*time.Second, 4*o.Timeout) // two lags: the alarm of the script is then longer than any holder is silent by itself
	o.Lease = cmp.Or(o.Lease, max(15*time.Second, shortest))
	if o.Rate.N > 0 {
		o.Local.N = cmp.Or(o.Local.N, max(1, o.Rate.N/10))
	}
	if o.Slots > 0 {
		o.Local.Slots = cmp.Or(o.Local.Slots, max(1, o.Slots/10))
	}
	if err := checkKey("Options", o.Key); err != nil {
		return o, err
	}
	switch {
	case o.Rate.N == 0 && o.Rate.Per != 0:
		return o, errors.New("redisgate: Options.Rate.Per without N")
	case o.Rate.N == 0 && o.Slots == 0:
		return o, errors.New("redisgate: neither Options.Rate nor Slots is set")
	case o.Rate.N > 0 && o.Rate.Per != min(max(o.Rate.Per, 10*time.Millisecond), 30*day):
		return o, fmt.Errorf("redisgate: Options.Rate.Per: %v is not between 10ms and 30 days", o.Rate.Per)
	case o.Rate.N > 0 && o.Slack >= o.Rate.Per:
		return o, fmt.Errorf("redisgate: Options.Slack: %v is not less than Rate.Per, %v", o.Slack, o.Rate.Per)
	}
	return o, cmp.Or(
		between("Rate.N", o.Rate.N, 0, mostDials),
		between("Slots", o.Slots, 0, mostDials),
		between("Local.N", o.Local.N, 0, o.Rate.N),
		between("Local.Slots", o.Local.Slots, 0, o.Slots),
		between("Slack", o.Slack, 0, 10*time.Second),
		between("Timeout", o.Timeout, o.Slack, 10*time.Second),
		between("Lease", o.Lease, shortest, 30*day))
}

// checkKey returns an error if a Key cannot be used.
func checkKey(options, key string) error {
	switch {
	case key == "":
		return fmt.Errorf("redisgate: %s.Key is empty", options)
	case strings.ContainsAny(key, "{}"):
		return fmt.Errorf("redisgate: %s.Key: %.200q contains a brace", options, key)
	case len(key) > 200:
		return fmt.Errorf("redisgate: %s.Key is longer than 200 bytes: %d", options, len(key))
	}
	return nil
}

// mostDials is the largest Rate.N and Slots, so that all numbers are exact in the script.
const mostDials = 1 << 30

func between[T int | time.Duration](option string, value, least, most T) error {
	if value < least || value > most {
		return fmt.Errorf("redisgate: Options.%s: %v is not between %v and %v", option, value, least, most)
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

// differ returns an error if n, per and slots are the limits of another process; all zero: there is none.
func (o *Options) differ(n int, per time.Duration, slots int) error {
	if n == 0 && slots == 0 {
		return nil
	}
	return fmt.Errorf("redisgate: another process has other limits for the key %s: %s, and this one %s",
		o.Key, limits(n, per, slots), limits(o.Rate.N, o.Rate.Per, o.Slots))
}

func limits(n int, per time.Duration, slots int) string {
	switch {
	case slots == 0:
		return fmt.Sprintf("%d per %v", n, per)
	case n == 0:
		return fmt.Sprintf("%d slots", slots)
	}
	return fmt.Sprintf("%d per %v, %d slots", n, per, slots)
}

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
