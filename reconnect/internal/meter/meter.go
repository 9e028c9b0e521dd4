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
	options  Options

	mu      sync.Mutex           // guards what follows
	members map[*member]struct{} // whose counts are read
	joined  uint64               // how many members there ever were
	dead    map[Key][]uint64     // the numbers of the members that have ended by themselves and have no successor, the oldest first
	sums    map[Key]*Totals      // of the past: without live connections
	sweepAt int                  // how many members there must be to look for those that have ended
}

// Recorder gets the events. Its methods are called in hooks of a Trace, by several goroutines at once:
// they must be quick, and must not call the Meter.
type Recorder interface {
	// Start reports an empty counter or histogram.
	Start(i *Instrument, k Key, v Values)

	// Add adds one to a counter.
	Add(i *Instrument, k Key, v Values)

	// Observe adds a time, in seconds, to a histogram.
	Observe(i *Instrument, k Key, v Values, seconds float64)
}

// Options are the options of a Meter.
type Options struct {
	Names   int  // how many keys there may be; connections beyond that share the name "other". 0 and negative: no limit
	Servers bool // whether a Key has the server
}

// Source describes one connection to the Meter.
type Source struct {
	Name  string                      // the value of the label name
	Sets  []func() subscription.Stats // the sets of subscriptions of the connection
	Trace func(Key) *reconnect.Trace  // more hooks; nil: none. The Key has the name and the server, also where Options.Names makes "other" of them

	Endpoint string // what a Run dials, a URL or host:port; empty: it is not known. A Conn has one of its own
}

// New returns a Meter whose events go to r.
func New(r Recorder, o Options) *Meter {
	return &Meter{recorder: r, options: o, members: map[*member]struct{}{}, dead: map[Key][]uint64{}, sums: map[Key]*Totals{}}
}

// Watch measures c until c has ended, or until stop is called. Events are counted from the next event
// on; the counts of c itself begin with reconnect.New. Calls of stop after the first do nothing.
func (m *Meter) Watch(c *reconnect.Conn, s Source) (stop func()) {
	key := m.key(s, c)
	x := m.join(c, s, key)
	unwatch := c.Watch(x.hooks(s.more(key)))
	x.begin()
	m.sweep()
	return sync.OnceFunc(func() {
		unwatch()
		x.retire()
		m.unbury(x)
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

// Trace returns hooks for one Run. They measure events, because a Run has no counts, and the state of a Run that has
// ended by itself.
func (m *Meter) Trace(s Source) *reconnect.Trace {
	key := m.key(s, nil)
	x := &member{meter: m, key: m.label(key, s)}
	m.mu.Lock()
	m.succeed(x)
	m.mu.Unlock()
	return x.hooks(s.more(key))
}

// key returns the key of a connection, without the limit on names. c is nil for a Run.
func (m *Meter) key(s Source, c *reconnect.Conn) Key {
	k, endpoint := Key{Name: strings.ToValidUTF8(s.Name, "?")}, s.Endpoint
	if c != nil {
		endpoint = c.Endpoint()
	}
	if m.options.Servers {
		k.Address, k.Port = serverOf(endpoint)
	}
	return k
}

// more returns the other hooks of a source.
func (s Source) more(k Key) *reconnect.Trace {
	if s.Trace == nil {
		return nil
	}
	return s.Trace(k)
}

// Collect returns the Totals of now, of each key that there ever was, sorted by name.
func (m *Meter) Collect() []*Totals {
	members, all := m.now()
	byKey := make(map[Key]*Totals, len(all))
	for _, t := range all {
		byKey[t.Key] = t
	}
	for _, x := range members {
		x.read(byKey[x.key])
	}
	return all
}

// now returns the live connections, and the counts of the connections that have ended. Each connection
// is in one of the two.
func (m *Meter) now() ([]*member, []*Totals) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*Totals, 0, len(m.sums))
	for _, key := range slices.SortedFunc(maps.Keys(m.sums), Key.compare) {
		t := *m.sums[key]
		t.Ended = uint64(len(m.dead[key]))
		all = append(all, &t)
	}
	return slices.Collect(maps.Keys(m.members)), all
}

// join adds a connection.
func (m *Meter) join(c *reconnect.Conn, s Source, k Key) *member {
	x := &member{meter: m, key: m.label(k, s), conn: c, sets: s.Sets}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.succeed(x)
	m.members[x] = struct{}{}
	m.sums[x.key].EverConns = true
	return x
}

// succeed gives a connection its number. If one of its key has ended by itself before, the new one is its successor.
// The caller holds mu.
func (m *Meter) succeed(x *member) {
	m.joined++
	x.number = m.joined
	if dead := m.dead[x.key]; len(dead) > 0 {
		m.dead[x.key] = slices.Delete(dead, 0, 1)
	}
}

// leave removes a connection, whose last counts are these.
func (m *Meter) leave(x *member, last Counts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.members[x]; there {
		delete(m.members, x)
		m.sums[x.key].Counts.add(last)
	}
}

// bury notes that a connection has ended by itself.
func (m *Meter) bury(x *member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !x.buried {
		x.buried = true
		m.dead[x.key] = append(m.dead[x.key], x.number)
	}
}

// unbury forgets a connection that may have ended by itself.
func (m *Meter) unbury(x *member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	x.buried = true // from now on
	m.dead[x.key] = slices.DeleteFunc(m.dead[x.key], func(n uint64) bool { return n == x.number })
}

// label returns the key by which a connection is measured, and starts the instruments of a new key.
func (m *Meter) label(k Key, s Source) Key {
	k, first := m.enter(k, len(s.Sets) > 0)
	if first {
		for _, i := range Instruments() {
			for _, v := range i.Zero {
				m.recorder.Start(i, k, v)
			}
		}
	}
	return k
}

// enter returns the key by which a connection is measured, and whether it is the first one.
func (m *Meter) enter(k Key, sets bool) (label Key, first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sums[k]
	if s == nil && m.options.Names > 0 && len(m.sums) >= m.options.Names {
		k = Key{Name: Other}
		s = m.sums[k]
	}
	if s == nil {
		s, first = &Totals{Key: k}, true
		m.sums[k] = s
	}
	s.EverSets = s.EverSets || sets
	return k, first
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
