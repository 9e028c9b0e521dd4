package subscription

import (
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Options are the options of [New]. Encode is required, and so is Answer, unless NoAnswers
// is set. No lock is held while a function of the Options runs. Such a function must not wait
// for the Set or for the end of its Conn. Except for Events it must not wait for a session
// either, as Conn.Write can, because a session may wait for the function.
type Options[K comparable] struct {
	// Encode makes the message for one request, which is for up to Batch keys. It should put
	// r.ID into the message, and may set another one before, if the venue wants ids of
	// another form: see [Request]. It must not keep r.Keys. An error has the effect of an
	// answer that refuses the request, with that error. One goroutine calls it for each
	// session, so that two calls can run at once while one session replaces another.
	Encode func(r *Request[K]) (conn.Message, error)

	// Answer reads one received message. It reports false if the message is no answer to a
	// request, so that it goes on to the reader of the Conn. It is called with each message
	// of the connection, in the goroutine that reads, so it must be quick. It must not keep
	// m.Data, nor return a part of it.
	Answer func(m reconnect.Message) (a Answer[K], ok bool)

	// NoAnswers says that the venue does not answer. A key is then held when the request for
	// it was written, whatever the venue makes of it. Answer must be nil, or may report what
	// has Answer.Ended set. Default: the venue answers.
	NoAnswers bool

	// Batch is how many keys one request has at most. Default: 50. Negative: an error.
	Batch int

	// InFlight is how many requests of one session wait for their answers at most. It must be 1
	// for a venue whose answers have neither ids nor keys: see [Answer]. Default: 8. Negative:
	// an error.
	InFlight int

	// Timeout is how long an answer may take, from the moment when the request was written.
	// Then the keys are asked for once more, with a new id, and after the second time OnReject
	// decides, with [ErrNoAnswer]. Default: 10 s. Negative: for ever.
	//
	// While OnMessage runs, or while the inbox is full and blocks, nobody reads the
	// session. That time counts, because a Set cannot tell a busy reader from a silent venue:
	// an answer that was not read in time did not come in time. So Timeout must be longer than
	// the reader may be busy. If that has no limit do not answer ErrNoAnswer with [DecisionDrop] or
	// [DecisionRedial]. With [DecisionRetry] it costs requests that were not needed, and no key. The time in
	// which a session that is not ready yet waits to write does not count.
	Timeout time.Duration

	// OnReject decides what follows when the venue has refused a key, or has not answered
	// twice. A batch that was refused is divided until the key is alone, so that OnReject gets
	// the one key that is to blame. Default: DecisionDrop if the error is marked by
	// [backoff.Permanent], else DecisionRetry.
	OnReject func(r Rejection[K]) Decision

	// Backoff says how long DecisionRetry waits. Its History counts the refusals in a row of one key.
	// If it gives up the verdict is DecisionDrop. A time in the error (see [backoff.RetryAfter]) is
	// added. Default: &[backoff.Exponential]{Cap: time.Minute}.
	Backoff backoff.Policy

	// Essential reports whether a session without this key is of no use. Such keys are asked
	// for before a session is ready. It is called once, when the key is first added. If it is true
	// of all streams of a replay.Bridge, that needs no AwaitSubscribed: when what was missed is
	// fetched, they are subscribed, except those that were refused. Default: none is essential.
	Essential func(k K) bool

	// Events is called with what happens to the keys, in order, one call at a time, in a
	// goroutine of its own, so that other functions of the Options may run at the same time. It
	// may write by the Conn, and wait for a session to do so. While it runs, a session that
	// is ready gets no further request, but nothing keeps the next session from being ready.
	//
	// An event of a session that ends before Events is called with it is dropped. The exception
	// is [EventRejected]: the last one for each key and Op comes all the same. So an Events that
	// takes long may miss what was true only meanwhile, and no backlog grows. Default: none.
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
