package reconnect

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/watch"
)

// settings are the Options of a Conn but for OnSession and Layers, with the default in the place of
// each field that is zero. Run is apart, because the many Conns that leave it alone share it.
type settings struct {
	Name         string
	OpenTimeout  time.Duration
	OnMessage    func(ctx context.Context, m Message)
	OnSeam       func(ctx context.Context, s *Seam)
	Inbox        Inbox
	WhenDown     WhenDown
	Outbox       Outbox
	CloseTimeout time.Duration
	rare         *rare
	Run          *RunOptions // without a Name
}

const defaultCloseTimeout = 5 * time.Second

var defaultLiveness = &watch.LivenessOptions{Limit: 30 * time.Second, Now: time.Now}

// options returns the options of the watcher, with the default in the place of each field that is
// zero.
func (o *Liveness) options() *watch.LivenessOptions {
	if o.Limit == 0 && o.Probe == nil && o.ProbeEvery == 0 && o.now == nil {
		return defaultLiveness
	}
	w := &watch.LivenessOptions{Limit: cmp.Or(o.Limit, defaultLiveness.Limit), Probe: o.Probe, ProbeEvery: o.ProbeEvery, Now: o.now}
	w.Limit = min(w.Limit, watch.MostLimit)
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

// rare are the settings that most Conns leave alone. Those share one.
type rare struct {
	KeepAlive   KeepAlive
	Pace        budget.Window
	Resumable   bool
	Rotate      Rotation
	ReadAdvice  func(code int, reason string) (Advice, bool)
	MarkRefetch bool
}

var noRare = &rare{Rotate: Rotation{}.withDefaults(false), ReadAdvice: ReadAdvice}

// rare returns the settings that most leave alone.
func (o *Options) rare() *rare {
	if o.KeepAlive.Every <= 0 && o.Pace.N == 0 && !o.Resumable && !o.MarkRefetch && o.ReadAdvice == nil && !o.Run.OneConnection &&
		o.Rotate.After == 0 && o.Rotate.Overlap == OverlapHold && o.Rotate.Drain == 0 {
		return noRare
	}
	r := &rare{o.KeepAlive, o.Pace, o.Resumable, o.Rotate.withDefaults(o.Run.OneConnection), o.ReadAdvice, o.MarkRefetch}
	if r.ReadAdvice == nil {
		r.ReadAdvice = ReadAdvice
	}
	return r
}

// withDefaults returns the settings that follow from o, for connections by d.
func (o Options) withDefaults(d Dialer) (settings, error) {
	if err := o.validate(); err != nil {
		return settings{}, err
	}
	if o.Run.Rand != nil {
		o.Run.Rand = &lockedSource{source: o.Run.Rand} // because two supervisors, and timers, use it
	}
	name := cmp.Or(o.Name, o.Run.Name)
	o.Run.Name = "" // because it would keep Conns from sharing
	if h, ok := d.(interface{ Host() string }); ok && o.Run.Gate != nil && o.Run.Host == "" {
		o.Run.Host = h.Host()
	}
	run, err := o.Run.withDefaults()
	if err != nil {
		return settings{}, err
	}
	o.Outbox.Messages = cmp.Or(o.Outbox.Messages, 1024)
	o.Outbox.Bytes = cmp.Or(o.Outbox.Bytes, 16<<20)
	o.Outbox.Age = cmp.Or(o.Outbox.Age, 5*time.Minute)
	o.Inbox.Messages = cmp.Or(o.Inbox.Messages, 64)
	o.Inbox.Bytes = cmp.Or(o.Inbox.Bytes, 16<<20)
	return settings{
		Name: name, OpenTimeout: cmp.Or(o.OpenTimeout, 30*time.Second), OnMessage: o.OnMessage, OnSeam: o.OnSeam,
		Inbox: o.Inbox, WhenDown: o.WhenDown, Outbox: o.Outbox, CloseTimeout: cmp.Or(o.CloseTimeout, defaultCloseTimeout),
		Run: run, rare: o.rare(),
	}, nil
}
