package debug

import (
	"crypto/rand"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/budget"
)

// Page shows the connections of a program, for the people who run it. It is an [http.Handler]
// that fits any path, and answers GET and HEAD. Any goroutine may call the methods of a Page, except
// inside a function of its [Options], of [ConnOptions] or of RegisterValues.
//
// A query selects:
//
//	q=TEXT     only the Conns whose name or endpoint contains TEXT
//	show=WORD  only the Conns that are ended, away, flapping, ready or closed
//	page=N     the Nth hundred of these; the first is 1
//	conn=ID    one Conn, with its sessions and its events
//	json       a [Snapshot] as JSON
//
// A Page keeps no Conn open and ends none.
type Page struct {
	o       *Options
	boot    string // names this Page, so that a browser notices that the program was restarted
	closing chan struct{}
	version atomic.Uint64 // is raised by each event, and with each Conn that comes or goes
	running sync.WaitGroup
	streams chan struct{} // holds a token for each stream

	look sync.Mutex // guards the fields of ranking; it is taken before mu

	mu       sync.Mutex // guards what follows
	ranking  *ranking   // nil: it must be made, so that it does not keep a Conn that was forgotten
	isClosed bool
	lastID   uint64
	conns    map[uint64]*watched
	past     []*watched  // of conns, those that have ended, in the order of their ends
	forget   *time.Timer // calls sweep when the first of past is to be forgotten; nil: not needed yet
	gates    []*source[*budget.Gate]
	breakers []*source[*budget.Breaker]
	groups   []*source[func() []Value]
	servers  []*http.Server
}

// source is something that was registered beside the Conns.
type source[T any] struct {
	name string
	of   T
}

// ConnOptions are the options of [Page.Register]. A nil *ConnOptions is fine.
type ConnOptions struct {
	// Subscriptions returns how many subscriptions are wanted and how many are held, such as
	//
	//	func() (wanted, held int) { s := set.Stats(); return s.Wanted, s.Held }
	//
	// with a subscription.Set. Subscriptions is called whenever the Conn is shown, so it must be
	// quick.
	// Default: none.
	Subscriptions func() (wanted, held int)
}

// endedKept is how many Conns that have ended are shown.
const endedKept = 256

// New returns a Page that shows nothing yet. Close it at the end of the program. The error names the
// option that is wrong.
func New(o *Options) (*Page, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Page{
		o: options, boot: rand.Text(), closing: make(chan struct{}), conns: map[uint64]*watched{},
		streams: make(chan struct{}, options.Streams), // one token for each
	}, nil
}

// Register shows c under a name, from its next event on, until unregister is called. Several Conns may
// have the same name. The Page keeps the last 64 events and 32 sessions; for the memory see Cost in the
// documentation of the package. A Conn that has ended is shown as ended, and is forgotten after
// Options.Keep, so a Conn that ends needs no unregister. c must not be nil; o may be nil. After Close
// Register does nothing.
func (p *Page) Register(name string, c *reconnect.Conn, o *ConnOptions) (unregister func()) {
	w := &watched{page: p, name: clean(name), endpoint: clean(p.o.Endpoint(c.Endpoint())), conn: c}
	if o != nil {
		w.o = *o
	}
	w.text = searched(w.name, w.endpoint)
	p.mu.Lock()
	if p.isClosed {
		p.mu.Unlock()
		return func() {}
	}
	p.lastID++
	w.id = p.lastID
	p.conns[w.id] = w
	status := w.watch()
	p.mu.Unlock()
	p.version.Add(1)
	switch {
	case status.State == reconnect.StateClosed:
		w.end(reconnect.ConnDone{Err: status.Err})
	case status.Err != nil:
		w.missed(status.Err, status.Since)
	}
	return func() { p.unregister(w) }
}

// unregister forgets w.
func (p *Page) unregister(w *watched) {
	w.stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(w)
}

// drop forgets w. The caller holds mu.
func (p *Page) drop(w *watched) {
	delete(p.conns, w.id)
	p.ranking = nil
	if i := slices.Index(p.past, w); i >= 0 {
		p.past = slices.Delete(p.past, i, i+1)
	}
	p.version.Add(1)
}

// ended keeps that w has ended.
func (p *Page) ended(w *watched) {
	w.stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.conns[w.id] == nil || slices.Contains(p.past, w):
		return
	case p.o.Keep < 0:
		p.drop(w)
		return
	case len(p.past) >= endedKept:
		p.drop(p.past[0])
	}
	p.past = append(p.past, w)
	p.arm()
}

// arm sets the timer for the first of past. The caller holds mu.
func (p *Page) arm() {
	if p.isClosed || len(p.past) == 0 {
		return
	}
	d := time.Until(p.past[0].endedAt().Add(p.o.Keep))
	if p.forget == nil {
		p.forget = time.AfterFunc(d, p.sweep)
	} else {
		p.forget.Reset(d)
	}
}

// sweep forgets the Conns whose time is over.
func (p *Page) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.past) > 0 && time.Since(p.past[0].endedAt()) >= p.o.Keep {
		p.drop(p.past[0])
	}
	p.arm()
}

// RegisterGate shows the lines of a gate until unregister is called. Lines that are down come first,
// then lines that are held, then the longest. g must not be nil.
func (p *Page) RegisterGate(name string, g *budget.Gate) (unregister func()) {
	return register(p, &p.gates, name, g)
}

// RegisterBreaker shows the state of a breaker until unregister is called. b must not be nil.
func (p *Page) RegisterBreaker(name string, b *budget.Breaker) (unregister func()) {
	return register(p, &p.breakers, name, b)
}

// RegisterValues shows a group of values of the program, such as how many members a chat room has, until
// unregister is called. values is called whenever the group is shown, and may be called by several
// goroutines at once; the page waits until values returns. The first 32 values are shown. values must
// not be nil.
func (p *Page) RegisterValues(name string, values func() []Value) (unregister func()) {
	return register(p, &p.groups, name, values)
}

// register adds a source to list.
func register[T any](p *Page, list *[]*source[T], name string, of T) (unregister func()) {
	s := &source[T]{clean(name), of}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isClosed {
		return func() {}
	}
	*list = append(slices.Clone(*list), s) // because sources returns lists
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		*list = slices.DeleteFunc(slices.Clone(*list), func(x *source[T]) bool { return x == s })
	}
}

// Close ends the servers of Listen and the updates of open pages, and waits until the updates have
// ended: 5 s at most, if a browser does not read. A request for a page or for JSON that is under way
// may end later. From then on the handler answers 503. The Page watches no Conn any more; the Conns go
// on. Close returns nil, and may be called more than once.
func (p *Page) Close() error {
	p.mu.Lock()
	first, servers, conns := !p.isClosed, p.servers, p.conns
	if first {
		p.isClosed, p.conns, p.past, p.ranking = true, nil, nil, nil
		close(p.closing)
		if p.forget != nil {
			p.forget.Stop()
		}
	}
	p.mu.Unlock()
	if first {
		for _, w := range conns {
			w.stop()
		}
		for _, s := range servers {
			_ = s.Close()
		}
	}
	p.running.Wait()
	return nil
}

// closed reports whether Close was called.
func (p *Page) closed() bool {
	select {
	case <-p.closing:
		return true
	default:
		return false
	}
}
