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
	names    int // how many there may be; negative: no limit

	mu      sync.Mutex // guards what follows
	members map[*member]struct{}
	sums    map[string]*Totals // of the past, by the value of the label: without live connections
	sweepAt int                // how many members there must be to look for those that have ended
}

// Recorder gets the events. Its methods are called in hooks of a Trace, by several goroutines at once:
// they must be quick, and must not call the Meter.
type Recorder interface {
	// Start reports an empty counter or histogram.
	Start(i *Instrument, name string, v Values)

	// Add adds one to a counter.
	Add(i *Instrument, name string, v Values)

	// Observe adds a time, in seconds, to a histogram.
	Observe(i *Instrument, name string, v Values, seconds float64)
}

// Source describes one connection to the Meter.
type Source struct {
	Name  string                      // the value of the label name
	Sets  []func() subscription.Stats // the sets of subscriptions of the connection
	Trace *reconnect.Trace            // more hooks; nil: none
}

// New returns a Meter whose events go to r. names is how many names there may be; connections beyond
// that share the name "other". Negative: no limit.
func New(r Recorder, names int) *Meter {
	return &Meter{recorder: r, names: names, members: map[*member]struct{}{}, sums: map[string]*Totals{}}
}

// Watch measures c until c has ended, or until stop is called. Events are counted from the next event
// on; the counts of c itself begin with reconnect.New. Calls of stop after the first do nothing.
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

// Layer returns a layer for one Conn, which measures the Conn from its first event until its end.
func (m *Meter) Layer(s Source) *reconnect.Layer {
	var taken atomic.Bool
	var conn *reconnect.Conn
	var stop func()
	return &reconnect.Layer{
		Start: func(c *reconnect.Conn) error {
			if !taken.CompareAndSwap(false, true) {
				return errors.New("the layer of metrics belongs to one Conn, and has one already: make a layer for each Conn")
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

// Trace returns hooks for one Run. They measure events only, because a Run counts nothing.
func (m *Meter) Trace(s Source) *reconnect.Trace {
	x := &member{meter: m, name: m.label(s)}
	return x.hooks(s.Trace)
}

// Collect returns the Totals of now, of each name that there ever was, sorted by name.
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

// now returns the live connections, and the counts of the connections that have ended. Each connection
// is in one of the two.
func (m *Meter) now() ([]*member, []*Totals) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*Totals, 0, len(m.sums))
	for _, name := range slices.Sorted(maps.Keys(m.sums)) {
		t := *m.sums[name]
		all = append(all, &t)
	}
	return slices.Collect(maps.Keys(m.members)), all
}

// join adds a connection.
func (m *Meter) join(c *reconnect.Conn, s Source) *member {
	x := &member{meter: m, name: m.label(s), conn: c, sets: s.Sets}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.members[x] = struct{}{}
	m.sums[x.name].EverConns = true
	return x
}

// leave removes a connection, whose last counts are these.
func (m *Meter) leave(x *member, last Counts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.members[x]; there {
		delete(m.members, x)
		m.sums[x.name].Counts.add(last)
	}
}

// label returns the value of the label for a name, and starts the instruments of a new name.
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
	s := m.sums[name]
	if s == nil && m.names > 0 && len(m.sums) >= m.names {
		name = Other
		s = m.sums[name]
	}
	if s == nil {
		s, first = &Totals{Name: name}, true
		m.sums[name] = s
	}
	s.EverSets = s.EverSets || sets
	return name, first
}

// sweep removes connections that have ended, so that they are not kept if Collect is never called. It
// looks at all connections each time that their number has doubled.
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
