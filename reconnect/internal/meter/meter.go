package meter

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/subscription"
)

// Meter measures connections. Any goroutine may call its methods.
type Meter struct {
	recorder Recorder
	o        Options

	mu      sync.Mutex // guards what follows
	members map[*member]struct{}
	sums    map[string]*sum // by the value of the label
	sweepAt int             // how many members there must be to look for those that have ended
}

// Recorder gets what the events say. Its methods are called in hooks of a Trace: they must be quick,
// may be called at once, and must not call the Meter.
type Recorder interface {
	// Start says that there is a counter or a histogram, with nothing in it yet.
	Start(i *Instrument, name string, v Values)

	// Add adds one to a counter.
	Add(i *Instrument, name string, v Values)

	// Observe adds a time, in seconds, to a histogram.
	Observe(i *Instrument, name string, v Values, seconds float64)
}

// Options are the options of [New].
type Options struct {
	// Names is how many names there may be. What is beyond has the name "other". Default: 1000.
	// Negative: no limit.
	Names int

	// NoNames says that all connections have the empty name.
	NoNames bool
}

// Source is what belongs to one connection beside the Conn itself.
type Source struct {
	Name  string                      // the label
	Sets  []func() subscription.Stats // its sets of subscriptions
	Trace *reconnect.Trace            // more hooks; nil: none
}

// sum is what is known of one name.
type sum struct {
	counts    Counts // of the connections that have ended
	everConns bool   // whether there was a Conn
	everSets  bool   // whether there was a set of subscriptions
}

// New returns a Meter whose events go to r.
func New(r Recorder, o Options) *Meter {
	if o.Names == 0 {
		o.Names = 1000
	}
	return &Meter{recorder: r, o: o, members: map[*member]struct{}{}, sums: map[string]*sum{}}
}

// Watch measures c until it has ended, or until stop is called. Events are counted from the next one
// on, and what c counts itself from New on. Calls of stop after the first do nothing.
func (m *Meter) Watch(c *reconnect.Conn, s Source) (stop func()) {
	x := m.join(c, s)
	unwatch := c.Watch(x.hooks(s.Trace))
	x.begin()
	m.sweep()
	return sync.OnceFunc(func() {
		unwatch()
		x.retire()
	})
}

// Layer returns a layer that measures the Conn that it is given to, from its first event on, until it
// has ended. It can be given to one Conn.
func (m *Meter) Layer(s Source) *reconnect.Layer {
	var taken atomic.Bool
	var conn *reconnect.Conn
	var stop func()
	return &reconnect.Layer{
		Start: func(c *reconnect.Conn) error {
			if !taken.CompareAndSwap(false, true) {
				return errors.New("a layer of metrics is for one Conn")
			}
			conn, stop = c, m.Watch(c, s)
			return nil
		},
		End: func(error) {
			if conn.State() != reconnect.StateClosed {
				stop() // because New has failed, so that the Conn never lived
			}
		},
	}
}

// Trace returns hooks for one Run. There are events only, because a Run counts nothing.
func (m *Meter) Trace(s Source) *reconnect.Trace {
	x := &member{meter: m, name: m.label(s)}
	return x.hooks(s.Trace)
}

// Collect returns what there is to know now, for each name that there ever was, in their order.
func (m *Meter) Collect() []*Totals {
	members, all := m.now()
	byName := make(map[string]*Totals, len(all))
	for _, t := range all {
		byName[t.Name] = t
	}
	for _, x := range members {
		x.read(byName[x.name])
	}
	return all
}

// now returns the connections, and the counts of those that have ended. Each connection is in one of
// the two.
func (m *Meter) now() ([]*member, []*Totals) {
	m.mu.Lock()
	defer m.mu.Unlock()
	members := make([]*member, 0, len(m.members))
	for x := range m.members {
		members = append(members, x)
	}
	all := make([]*Totals, 0, len(m.sums))
	for _, name := range slices.Sorted(maps.Keys(m.sums)) {
		s := m.sums[name]
		all = append(all, &Totals{Name: name, Counts: s.counts, EverConns: s.everConns, EverSets: s.everSets})
	}
	return members, all
}

// join adds a connection.
func (m *Meter) join(c *reconnect.Conn, s Source) *member {
	x := &member{meter: m, name: m.label(s), conn: c, sets: s.Sets}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.members[x] = struct{}{}
	m.sums[x.name].everConns = true
	return x
}

// leave removes a connection, whose last counts are these.
func (m *Meter) leave(x *member, last Counts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.members[x]; there {
		delete(m.members, x)
		m.sums[x.name].counts.add(last)
	}
}

// label returns the value of the label for a name, and makes what belongs to it.
func (m *Meter) label(s Source) string {
	name, first := m.enter(strings.ToValidUTF8(s.Name, "?"), len(s.Sets) > 0)
	if first {
		for _, i := range Instruments() {
			for _, v := range i.Zero {
				m.recorder.Start(i, name, v)
			}
		}
	}
	return name
}

// enter returns the value of the label for a name, and whether it is the first time.
func (m *Meter) enter(name string, sets bool) (label string, first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.o.NoNames {
		name = ""
	}
	s := m.sums[name]
	if s == nil && m.o.Names > 0 && len(m.sums) >= m.o.Names {
		name = Other
		s = m.sums[name]
	}
	if s == nil {
		s, first = &sum{}, true
		m.sums[name] = s
	}
	s.everSets = s.everSets || sets
	return name, first
}

// sweep removes connections that have ended, so that they are not kept if nobody collects. It looks
// at all of them each time that their number has doubled.
func (m *Meter) sweep() {
	for _, x := range m.ended() {
		x.retire()
	}
}

func (m *Meter) ended() []*member {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.members) < max(m.sweepAt, 64) {
		return nil
	}
	var list []*member
	for x := range m.members {
		if x.conn.Err() != nil {
			list = append(list, x)
		}
	}
	m.sweepAt = 2 * (len(m.members) - len(list))
	return list
}
