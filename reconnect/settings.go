package reconnect

import (
	"cmp"
	"context"
	"math"
	"reflect"
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
