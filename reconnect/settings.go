package reconnect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/watch"
)

// settings are the Options of a Conn but for OnSession, Layers and the name (see hooks), with the default in the place
// of each field that is zero. Options that most Conns leave alone are in structs of their own, which these Conns share.
type settings struct {
	OnMessage func(ctx context.Context, m Message)
	OnSeam    func(ctx context.Context, s *Seam)
	*sending
	*rare
	Run *RunOptions // without a Name
}

// sending are the settings of a Conn that queues messages.
type sending struct {
	WhenDown WhenDown
	Outbox   Outbox
}

// rare are other settings that most Conns leave alone.
type rare struct {
	OpenTimeout, CloseTimeout time.Duration

	Inbox       Inbox
	KeepAlive   KeepAlive
	Pace        budget.Window
	Resumable   bool
	Rotate      Rotation
	MarkRefetch bool
}

const defaultCloseTimeout = 5 * time.Second

var defaultLiveness = &watch.LivenessOptions{Limit: 30 * time.Second, Now: time.Now}

// options returns the options of the watcher, with the defaults.
func (o *Liveness) options() *watch.LivenessOptions {
	if o.Limit == 0 && o.Probe == nil && o.ProbeEvery == 0 && o.now == nil {
		return defaultLiveness
	}
	w := &watch.LivenessOptions{
		Limit:      cmp.Or(o.Limit, defaultLiveness.Limit),
		Probe:      o.Probe,
		ProbeEvery: max(o.ProbeEvery, 0),
		Now:        o.now,
	}
	w.Limit = min(max(w.Limit, 0), watch.MostLimit)
	if w.Now == nil {
		w.Now = time.Now
	}
	return w
}

// options returns the options of the watcher, nil if there is no limit.
func (o *Stall) options() *watch.StallOptions {
	if o.Limit <= 0 {
		return nil
	}
	return &watch.StallOptions{Limit: min(o.Limit, math.MaxInt64>>watch.MostStalls), Expected: o.Expected}
}

func (s sending) withDefaults() *sending {
	s.Outbox.Messages = cmp.Or(s.Outbox.Messages, 1024)
	s.Outbox.Bytes = cmp.Or(s.Outbox.Bytes, 16<<20)
	s.Outbox.Age = cmp.Or(s.Outbox.Age, 5*time.Minute)
	return &s
}

func (r rare) withDefaults(oneConnection bool) *rare {
	r.OpenTimeout = cmp.Or(r.OpenTimeout, 30*time.Second)
	r.CloseTimeout = cmp.Or(r.CloseTimeout, defaultCloseTimeout)
	r.Inbox.Messages = cmp.Or(r.Inbox.Messages, 64)
	r.Inbox.Bytes = cmp.Or(r.Inbox.Bytes, 16<<20)
	r.Rotate.Drain = cmp.Or(r.Rotate.Drain, 5*time.Second)
	if oneConnection {
		r.Rotate.Overlap = OverlapBreakFirst
	}
	return &r
}

// These are the settings of all Conns that leave them alone.
var plainSending, plainRare = sending{}.withDefaults(), rare{}.withDefaults(false)

// withDefaults returns the settings that follow from o, for connections by d.
func (o Options) withDefaults(d Dialer) (settings, error) {
	if err := o.validate(); err != nil {
		return settings{}, err
	}
	if o.Run.Rand != nil {
		o.Run.Rand = &lockedSource{source: o.Run.Rand} // because two supervisors, and timers, use it
	}
	o.Run.Name = "" // because it would keep Conns from sharing
	if h, ok := d.(interface{ Host() string }); ok && o.Run.Gate != nil && o.Run.Host == "" {
		o.Run.Host, o.Run.hostOfDialer = h.Host(), true
	}
	run, err := o.Run.withDefaults()
	if err != nil {
		return settings{}, err
	}
	s := settings{OnMessage: o.OnMessage, OnSeam: o.OnSeam, sending: plainSending, rare: plainRare, Run: run}
	if own := (sending{o.WhenDown, o.Outbox}); !reflect.ValueOf(own).IsZero() {
		s.sending = own.withDefaults()
	}
	own := rare{o.OpenTimeout, o.CloseTimeout, o.Inbox, o.KeepAlive, o.Pace, o.Resumable, o.Rotate, o.MarkRefetch}
	if !reflect.ValueOf(own).IsZero() || run.OneConnection {
		s.rare = own.withDefaults(run.OneConnection)
	}
	return s, nil
}

// validate returns an error that names the first option that makes no sense, and says why.
func (o *Options) validate() error {
	in, out, rotate := &o.Inbox, &o.Outbox, &o.Rotate
	switch {
	case o.OnMessage != nil && o.Inbox != Inbox{}:
		return errors.New("reconnect: Options.OnMessage and Options.Inbox: either push or pull")
	case o.OnSeam != nil && o.OnMessage == nil:
		return errors.New("reconnect: Options.OnSeam needs OnMessage; without OnMessage, Read returns the seams")
	case o.MarkRefetch && o.OnMessage != nil && o.OnSeam == nil:
		return errors.New("reconnect: Options.MarkRefetch with OnMessage needs OnSeam, which gets the marks")
	case o.MarkRefetch && o.Inbox.Overflow == InboxDiscard:
		return errors.New("reconnect: Options.MarkRefetch with InboxDiscard: there is no stream for the marks")
	case o.WhenDown > WhenDownKeep:
		return fmt.Errorf("reconnect: Options.WhenDown is none of the policies: %d", o.WhenDown)
	case o.Outbox.Keep != nil && o.WhenDown != WhenDownKeep:
		return errors.New("reconnect: Options.Outbox.Keep is asked only if Options.WhenDown is WhenDownKeep")
	case o.KeepAlive.Every > 0 && o.KeepAlive.Message == nil:
		return errors.New("reconnect: Options.KeepAlive.Every without Message: nothing to write")
	case o.KeepAlive.Every <= 0 && o.KeepAlive.Message != nil:
		return errors.New("reconnect: Options.KeepAlive.Message without Every is never written")
	case tooShort(o.KeepAlive.Every):
		return shortError("KeepAlive.Every", o.KeepAlive.Every)
	case o.Liveness.Limit < 0 && o.Liveness.ProbeEvery <= 0 && o.Liveness.Probe != nil:
		return errors.New("reconnect: Options.Liveness.Probe with a negative Limit, and without ProbeEvery, is never called")
	case tooShort(o.Liveness.ProbeEvery):
		return shortError("Liveness.ProbeEvery", o.Liveness.ProbeEvery)
	case o.Stall.Limit <= 0 && o.Stall.Expected != nil:
		return errors.New("reconnect: Options.Stall.Expected without a Limit is never asked")
	case rotate.After < 0:
		return fmt.Errorf("reconnect: Options.Rotate.After is negative: %v", rotate.After)
	case tooShort(rotate.After):
		return shortError("Rotate.After", rotate.After)
	case rotate.Drain < 0:
		return fmt.Errorf("reconnect: Options.Rotate.Drain is negative: %v", rotate.Drain)
	case rotate.Overlap > OverlapBreakFirst:
		return fmt.Errorf("reconnect: Options.Rotate.Overlap is none of the ways: %d", rotate.Overlap)
	case rotate.Overlap == OverlapMix && o.Run.OneConnection:
		return errors.New("reconnect: Options.Rotate.Overlap cannot be OverlapMix with RunOptions.OneConnection, which allows one connection")
	case rotate.Allowed != nil && rotate.After == 0:
		return errors.New("reconnect: Options.Rotate.Allowed without After is never asked")
	case slices.Contains(o.Layers, nil):
		return fmt.Errorf("reconnect: Options.Layers[%d] is nil", slices.Index(o.Layers, nil))
	case o.Run.Kick != nil:
		return errors.New("reconnect: Options.Run.Kick is not for a Conn: use its method Kick")
	}
	if err := o.Pace.Validate(); err != nil {
		return fmt.Errorf("reconnect: Options.Pace: %w", err)
	}
	return cmp.Or(
		validateLimits("Inbox", in.Messages, in.Bytes, in.Overflow, InboxDiscard),
		validateLimits("Outbox", out.Messages, out.Bytes, out.Overflow, OutboxReplaceKey))
}

func validateLimits[O ~uint8](queue string, messages, bytes int, overflow, last O) error {
	switch {
	case messages < 0:
		return fmt.Errorf("reconnect: Options.%s.Messages is negative: %d", queue, messages)
	case bytes < 0:
		return fmt.Errorf("reconnect: Options.%s.Bytes is negative: %d", queue, bytes)
	case overflow > last:
		return fmt.Errorf("reconnect: Options.%s.Overflow is none of the policies: %d", queue, overflow)
	}
	return nil
}

// shortest is the minimum for an interval at which something is repeated.
const shortest = time.Millisecond

func tooShort(interval time.Duration) bool { return interval > 0 && interval < shortest }

// shortError returns the error of an interval that was probably meant to have a unit.
func shortError(option string, d time.Duration) error {
	return fmt.Errorf("reconnect: Options.%s is %v: want at least %v, or a unit such as time.Second",
		option, d, shortest)
}
