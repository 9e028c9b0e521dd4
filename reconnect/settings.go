package reconnect

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/redial-go/redial/reconnect/budget"
)

// settings are the Options of a Conn, with the default in the place of each field that is
// zero. Run is apart, because the many Conns that leave it alone share it.
type settings struct {
	Name         string
	OnSession    func(ctx context.Context, o *Opening) error
	OpenTimeout  time.Duration
	OnMessage    func(ctx context.Context, m Message)
	OnSeam       func(ctx context.Context, s *Seam)
	Inbox        Inbox
	WhenDown     WhenDown
	Outbox       Outbox
	CloseTimeout time.Duration
	Liveness     *Liveness
	Stall        *Stall // nil: no limit
	more         *more
	Run          *RunOptions // without a Name
}

const defaultCloseTimeout = 5 * time.Second

var defaultLiveness = &Liveness{Limit: 30 * time.Second, now: time.Now}

// withDefaults returns o with the default in the place of each field that is zero. The caller
// must not change it.
func (o Liveness) withDefaults() *Liveness {
	if o.Limit == 0 && o.Probe == nil && o.Every == 0 && o.now == nil {
		return defaultLiveness
	}
	if o.Limit == 0 {
		o.Limit = defaultLiveness.Limit
	}
	o.Limit = min(o.Limit, math.MaxInt64>>mostPatience)
	if o.now == nil {
		o.now = time.Now
	}
	return &o
}

// more are the settings that most Conns leave alone. Those share one.
type more struct {
	Layers []*Layer
	*rare
}

// rare are the settings that most Conns leave alone, those with layers among them.
type rare struct {
	Idle       Idle
	Pace       budget.Window
	Resumable  bool
	Rotate     Rotation
	ReadAdvice func(code int, reason string) (Advice, bool)

	MarkRefetch bool
}

var (
	noRare = &rare{Rotate: Rotation{}.withDefaults(false), ReadAdvice: ReadAdvice}
	noMore = &more{rare: noRare}
)

// more returns the settings that most leave alone.
func (o *Options) more() *more {
	r := noRare
	if o.Idle.After > 0 || o.Pace.N != 0 || o.Resumable || o.MarkRefetch || o.ReadAdvice != nil || o.Run.OneConnection ||
		o.Rotate.After != 0 || o.Rotate.Overlap != OverlapHold || o.Rotate.Drain != 0 {
		r = &rare{o.Idle, o.Pace, o.Resumable, o.Rotate.withDefaults(o.Run.OneConnection), o.ReadAdvice, o.MarkRefetch}
		if r.ReadAdvice == nil {
			r.ReadAdvice = ReadAdvice
		}
	}
	if r == noRare && len(o.Layers) == 0 {
		return noMore
	}
	return &more{slices.Clone(o.Layers), r}
}

// withDefaults returns the settings that follow from o. A nil o has all the defaults.
func (o *Options) withDefaults(d Dialer) (settings, error) {
	var r Options
	if o != nil {
		r = *o
	}
	if err := r.validate(); err != nil {
		return settings{}, err
	}
	if r.Name == "" {
		r.Name = r.Run.Name
	}
	if r.Run.Rand != nil {
		r.Run.Rand = &lockedSource{source: r.Run.Rand} // because two supervisors, and timers, use it
	}
	r.Run.Name = "" // because it would keep Conns from sharing
	if h, ok := d.(interface{ Host() string }); ok && r.Run.Gate != nil && r.Run.Host == "" {
		r.Run.Host = h.Host()
	}
	run, err := r.Run.withDefaults()
	if err != nil {
		return settings{}, err
	}
	if r.OpenTimeout == 0 {
		r.OpenTimeout = 30 * time.Second
	}
	if r.CloseTimeout == 0 {
		r.CloseTimeout = defaultCloseTimeout
	}
	if r.Outbox.Messages == 0 {
		r.Outbox.Messages = 1024
	}
	if r.Outbox.Bytes == 0 {
		r.Outbox.Bytes = 16 << 20
	}
	if r.Outbox.Age == 0 {
		r.Outbox.Age = 5 * time.Minute
	}
	if r.Inbox.Messages == 0 {
		r.Inbox.Messages = 64
	}
	if r.Inbox.Bytes == 0 {
		r.Inbox.Bytes = 16 << 20
	}
	var stall *Stall
	if r.Stall.Limit > 0 {
		stall = &Stall{Limit: min(r.Stall.Limit, math.MaxInt64>>maxStalls), Expected: r.Stall.Expected}
	}
	return settings{
		Name: r.Name, OnSession: r.OnSession, OpenTimeout: r.OpenTimeout, OnMessage: r.OnMessage, OnSeam: r.OnSeam,
		Inbox: r.Inbox, WhenDown: r.WhenDown, Outbox: r.Outbox, CloseTimeout: r.CloseTimeout,
		Liveness: r.Liveness.withDefaults(), Stall: stall, Run: run,
		more: r.more(),
	}, nil
}
