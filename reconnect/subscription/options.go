package subscription

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Options are the options of [New]. Encode is required, and so is Answer unless NoAnswers is set.
//
// The functions are called without a lock. They must not wait for the Set, for a session (as Conn.Write can)
// or for the end of the Conn.
type Options[K comparable] struct {
	// Encode makes the message for one request. It should put r.ID into the message, and may change it first:
	// see [Request]. It must not retain r.Keys. An error counts as a refusal. Two calls may run concurrently
	// while one session replaces another.
	Encode func(r *Request[K]) (conn.Message, error)

	// Answer parses a received message. False means that it is no answer, and is passed to the reader of the
	// Conn. Answer is called with each message, in the goroutine that reads, so it must be quick. It must not
	// retain m.Data or return a part of it.
	Answer func(m reconnect.Message) (a Answer[K], ok bool)

	// NoAnswers says that the venue does not answer, so that a key is held once its request was written.
	// Answer may be nil, and may report only answers with Ended set.
	NoAnswers bool

	// Batch is the maximum number of keys in a request. Default: 50. Negative: an error.
	Batch int

	// InFlight is the maximum number of requests of a session that wait for answers, except those that may be
	// lost. It must be 1 if answers have neither ids nor keys: see [Answer]. Default: 8. Negative: an error.
	InFlight int

	// Timeout is the time until a request counts as not answered, unless the venue is slow: see "Slow venues" in
	// the package comment. It should be longer than OnMessage may run and the inbox may be full, because no
	// answer is read meanwhile. Default: 10 s. Negative: no limit.
	Timeout time.Duration

	// OnReject decides about a single key that the venue has refused, has not answered twice, or has ended
	// without a request. Default: [DecisionDrop] for an error marked by [backoff.Permanent], else
	// [DecisionRetry].
	OnReject func(r Rejection[K]) Decision

	// Backoff says how long a rejected key waits, from the decision on, until it is requested again. Several keys
	// with one error share their requests: see "Refused keys" in the package comment. The
	// History counts the key's rejections in a row. Giving up means DecisionDrop. The time in an error (see
	// [backoff.RetryAfter]) is added to the wait. Default: &[backoff.Exponential]{Cap: time.Minute}.
	Backoff backoff.Policy

	// Essential reports whether a session without this key is unusable. Essential keys are requested before a
	// session is ready. Add and Replace call Essential. If all keys are essential, a bridge.Bridge needs no
	// AwaitSubscribed.
	Essential func(k K) bool
}

const (
	defaultBatch    = 50
	defaultInFlight = 8
)

// withDefaults returns a copy with the defaults, or an error that names the option that is wrong.
func (o *Options[K]) withDefaults() (c Options[K], err error) {
	switch {
	case o == nil || o.Encode == nil:
		return c, errors.New("subscription: Options.Encode is missing")
	case o.Answer == nil && !o.NoAnswers:
		return c, errors.New("subscription: Options.Answer is missing; set NoAnswers if the venue does not answer")
	case o.Batch < 0:
		return c, fmt.Errorf("subscription: Options.Batch: %d is negative; 0 means %d", o.Batch, defaultBatch)
	case o.InFlight < 0:
		return c, fmt.Errorf("subscription: Options.InFlight: %d is negative; 0 means %d", o.InFlight, defaultInFlight)
	}
	c = *o
	c.Batch = cmp.Or(c.Batch, defaultBatch)
	c.InFlight = cmp.Or(c.InFlight, defaultInFlight)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	if c.Backoff == nil {
		c.Backoff = &backoff.Exponential{Cap: time.Minute}
	}
	return c, nil
}
