package subscription

import (
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
// the Set or for the end of the Conn. Only Events may wait for a session, as Conn.Write can: a session
// may wait for each of the others.
type Options[K comparable] struct {
	// Encode makes the message for one request, which is for up to Batch keys. Encode should put
	// r.ID into the message, and may set another id before, if the venue wants ids of another
	// form: see [Request]. Encode must not keep r.Keys. An error has the effect of an answer that
	// refuses the request with that error. One goroutine calls Encode for each session, so two
	// calls can run at once while one session replaces another.
	Encode func(r *Request[K]) (conn.Message, error)

	// Answer reads one received message. False means that the message is no answer to a request,
	// and goes on to the reader of the Conn. Answer is called with each message of the connection,
	// in the goroutine that reads, so it must be quick. It must not keep m.Data, nor return a
	// part of m.Data.
	Answer func(m reconnect.Message) (a Answer[K], ok bool)

	// NoAnswers says that the venue does not answer. A key is then held when its request was
	// written. Answer may be nil, and must report only answers with Answer.Ended set. Default: the
	// venue answers.
	NoAnswers bool

	// Batch is how many keys one request has at most. Default: 50. Negative: an error.
	Batch int

	// InFlight is how many requests of one session wait for their answers at most. It must be 1
	// for a venue whose answers have neither ids nor keys: see [Answer]. Default: 8. Negative:
	// an error.
	InFlight int

	// Timeout is how long an answer may take, from the moment when the request was written. After
	// it the keys are asked for once more, with a new id. After the second time OnReject decides,
	// with [ErrNoAnswer]. Default: 10 s. Negative: for ever.
	//
	// The time in which OnMessage runs, or the inbox is full and blocks, counts: a Set cannot tell
	// a busy reader from a silent venue. So Timeout must be longer than the reader may be busy. If
	// the reader may be busy without limit, do not answer ErrNoAnswer with [DecisionDrop] or
	// [DecisionRedial]: [DecisionRetry] costs a few requests, and no key. The time in which a session
	// that is not ready yet waits to write does not count.
	Timeout time.Duration

	// OnReject decides about a key that the venue has refused, has not answered twice, or has
	// ended by itself. A refused batch is divided until the key is alone, so OnReject gets the one
	// key that is to blame. Default: [DecisionDrop] if the error is marked by [backoff.Permanent],
	// else [DecisionRetry].
	OnReject func(r Rejection[K]) Decision

	// Backoff says how long a rejected key waits until it is asked for again. Its History counts
	// the refusals in a row of that key. If Backoff gives up, the decision is DecisionDrop. A time
	// in the error (see [backoff.RetryAfter]) is added. Default:
	// &[backoff.Exponential]{Cap: time.Minute}.
	Backoff backoff.Policy

	// Essential reports whether a session without this key is of no use. Essential keys are asked
	// for before a session is ready, and before all others. Essential is called once, when the key
	// is first added. A bridge.Bridge all of whose streams are essential needs no AwaitSubscribed:
	// at its fetch the streams are subscribed, except refused ones. Default: none is essential.
	Essential func(k K) bool

	// Events is called with each event, in order, one call at a time. It runs in a separate
	// goroutine, beside the other functions of the Options. It may write by the Conn, and wait for a
	// session to do so. While Events runs, a session that is ready sends no further request, but
	// the next session can become ready.
	//
	// When a session ends, its events that Events has not got yet are dropped, so that no backlog
	// grows. Exception: the last [EventRejected] for each key and Op is kept. Default: none.
	Events func(e Event[K])
}

const (
	defaultBatch    = 50
	defaultInFlight = 8
	defaultTimeout  = 10 * time.Second
)

// withDefaults returns a copy with the defaults.
func (o *Options[K]) withDefaults() (Options[K], error) {
	if o == nil {
		return Options[K]{}, errors.New("subscription: Options.Encode is missing")
	}
	if err := o.validate(); err != nil {
		return Options[K]{}, err
	}
	c := *o
	if c.Batch == 0 {
		c.Batch = defaultBatch
	}
	if c.InFlight == 0 {
		c.InFlight = defaultInFlight
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Backoff == nil {
		c.Backoff = &backoff.Exponential{Cap: time.Minute}
	}
	return c, nil
}

func (o *Options[K]) validate() error {
	switch {
	case o.Encode == nil:
		return errors.New("subscription: Options.Encode is missing")
	case o.Answer == nil && !o.NoAnswers:
		return errors.New("subscription: Options.Answer is missing; set NoAnswers if the venue does not answer")
	case o.Batch < 0:
		return fmt.Errorf("subscription: Options.Batch: %d is negative", o.Batch)
	case o.InFlight < 0:
		return fmt.Errorf("subscription: Options.InFlight: %d is negative", o.InFlight)
	}
	return nil
}
