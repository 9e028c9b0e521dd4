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

// Options are the options of [New]. Encode is required, and so is Answer, unless NoAnswers is set.
//
// No lock is held while a function of the Options runs. A function of the Options must not wait for
// the Set, for a session (as Conn.Write can) or for the end of the Conn.
type Options[K comparable] struct {
	// Encode makes the message for one request, which is for up to Batch keys. Encode should put
	// r.ID into the message. If the venue wants ids of another form, Encode sets r.ID first: see
	// [Request]. Encode must not keep r.Keys. An error counts as a refusal of the request. Two
	// calls can run at once while one session replaces another.
	Encode func(r *Request[K]) (conn.Message, error)

	// Answer reads one received message. False means that the message is no answer: it goes on to
	// the reader of the Conn. Answer is called with each message, in the goroutine that reads, so
	// Answer must be quick. Answer must not keep m.Data, nor return a part of m.Data.
	Answer func(m reconnect.Message) (a Answer[K], ok bool)

	// NoAnswers says that the venue does not answer. A key is then held when its request was
	// written. Answer may be nil, and may report only answers with Ended set. Default: the venue
	// answers.
	NoAnswers bool

	// Batch is how many keys one request has at most. Default: 50. Negative: an error.
	Batch int

	// InFlight is how many requests of one session wait for their answers at most. It must be 1
	// for a venue whose answers have neither ids nor keys: see [Answer]. Default: 8. Negative:
	// an error.
	InFlight int

	// Timeout is how long an answer may take after the request was written. Then the keys are asked
	// for once more, with a new id. After a second Timeout OnReject decides, with [ErrNoAnswer].
	// Default: 10 s. Negative: no limit.
	//
	// Timeout must be longer than OnMessage may run and the inbox may be full, because meanwhile no
	// answer is read. If that time has no limit, decide [DecisionRetry] about ErrNoAnswer: it costs
	// a few requests, and no key.
	Timeout time.Duration

	// OnReject decides about a key that the venue has refused, has not answered twice, or has
	// ended without a request. A refused batch is divided, so OnReject gets the one key that is to
	// blame. Default: [DecisionDrop] for an error that is marked by [backoff.Permanent], else
	// [DecisionRetry].
	OnReject func(r Rejection[K]) Decision

	// Backoff says how long a rejected key waits, from the decision on, until the key is asked for
	// again. The History counts the rejections of the key in a row. If Backoff gives up, the decision
	// is DecisionDrop. The time in an error (see [backoff.RetryAfter]) is added to the wait. Default:
	// &[backoff.Exponential]{Cap: time.Minute}.
	Backoff backoff.Policy

	// Essential reports whether a session without this key is of no use. Essential keys are asked
	// for before a session is ready, and before all other keys. Essential is called by Add and
	// Replace. If all keys are essential, a bridge.Bridge needs no AwaitSubscribed: when it fetches,
	// the session holds all keys that were not refused. Default: no key is essential.
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
