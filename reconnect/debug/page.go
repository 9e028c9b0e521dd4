package debug

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/budget"
)

// Page shows the connections of a program. It is an [http.Handler] that fits any path, and answers GET and
// HEAD. Behind anything that forwards TCP set [Options].Token: see [Loopback]. Its methods are safe for
// concurrent use, but must not be called in a function of its Options, of ConnOptions or of RegisterValues.
//
// A query selects:
//
//	q=TEXT       only the Conns whose name, endpoint or cause contains TEXT
//	show=WORD    only the Conns that are ended, away, flapping, ready or closed
//	server=TEXT  only the Conns to the server host:port
//	cause=WORD   only the Conns with a trouble for that reason, such as refused, 401 or gate
//	page=N       the Nth hundred of these; the first is 1
//	conn=ID      one Conn, with its sessions and its events
//	json         a Snapshot as JSON
//	token=TOKEN  loads the page again, with a cookie in the place of Options.Token
//
// A Page neither keeps a Conn open nor closes it.
type Page struct {
	o       *Options
	token   *token          // or nil if none is required
	boot    string          // names this Page, so that a browser notices that the program was restarted
	ctx     context.Context // ends with Close
	close   context.CancelFunc
	running sync.WaitGroup // the servers and the streams

	mu      sync.Mutex // guards what follows
	streams int
	lastID  uint64
	conns   map[uint64]*watched

	gateNumbers map[weak.Pointer[budget.Gate]]int // of the gates at which Conns have waited
	past        []*watched                        // of conns, those that have ended and are forgotten after a while, in the order of their ends
	dead        []*watched                        // of conns, those that have ended by themselves and have no successor, likewise
	gates       []*source[*budget.Gate]
	breakers    []*source[*budget.Breaker]
	groups      []*source[func() []Value]
	servers     []*http.Server
}

// source is something that was registered beside the Conns.
type source[T any] struct {
	name string
	of   T
}

// ConnOptions are the options of [Page.Register]. A nil *ConnOptions is fine.
type ConnOptions struct {
	// Subscriptions returns how many subscriptions are wanted and how many are held, as in
	//
	//	func() (wanted, held int) { s := set.Stats(); return s.Wanted, s.Held }
	//
	// with a subscription.Set. It is called whenever the Conn is shown, so it must be quick.
	Subscriptions func() (wanted, held int)
}

// A Conn that was closed, or has a successor, is shown for pastKept after that, and of such Conns the last endedKept
// are shown. Of the Conns that have ended by themselves and have no successor the last deadKept are shown.
const (
	pastKept  = 10 * time.Minute
	endedKept = 256
	deadKept  = 4096
)

// New returns a Page that shows nothing yet. Close it at the end of the program.
func New(o *Options) *Page {
	p := &Page{o: o.withDefaults(), boot: rand.Text(), conns: map[uint64]*watched{}, gateNumbers: map[weak.Pointer[budget.Gate]]int{}}
	p.token, p.o.Token = newToken(p.o.Token), ""
	p.ctx, p.close = context.WithCancel(context.Background())
	return p
}

// Register shows c under a name, which need not be unique, from its next event on, until unregister is called.
// The Page keeps the last 64 events and 32 sessions; for the memory see Cost in the package documentation.
//
// A Conn that the program has closed needs no unregister: it is forgotten after 10 min, or when 256 others have
// ended after it. A Conn that has ended by itself is shown until unregister is called, or until 10 min after a
// Conn is registered with the same name, as its successor. Of the Conns that have ended by themselves the last
// 4096 are shown.
//
// c must not be nil; o may be nil. After Close Register does nothing.
func (p *Page) Register(name string, c *reconnect.Conn, o *ConnOptions) (unregister func()) {
	w := &watched{page: p, name: clean(name), endpoint: clean(p.o.Endpoint(c.Endpoint())), conn: c}
	w.server = serverOf(w.endpoint)
	if o != nil {
		w.o = *o
	}
	w.text = strings.ToLower(w.name + "\n" + w.endpoint)
	p.mu.Lock()
	if p.closed() {
		p.mu.Unlock()
		return func() {}
	}
	p.lastID++
	w.id = p.lastID
	p.conns[w.id] = w
	p.succeed(w.name)
	status := w.watch()
	p.mu.Unlock()
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
	if i := slices.Index(p.past, w); i >= 0 {
		w.forget.Stop()
		p.past = slices.Delete(p.past, i, i+1)
	}
	if i := slices.Index(p.dead, w); i >= 0 {
		p.dead = slices.Delete(p.dead, i, i+1)
	}
}

// ended notes that w has ended, by itself or because the program has closed it.
func (p *Page) ended(w *watched, byItself bool) {
	w.stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.conns[w.id] == nil || w.forget != nil || slices.Contains(p.dead, w):
	case !byItself:
		p.forgetLater(w)
	default:
		if len(p.dead) >= deadKept {
			p.drop(p.dead[0])
		}
		p.dead = append(p.dead, w)
	}
}

// succeed notes that a Conn is registered with a name. If a Conn with that name has ended by itself, the new one is
// its successor. The caller holds mu.
func (p *Page) succeed(name string) {
	if i := slices.IndexFunc(p.dead, func(w *watched) bool { return w.name == name }); i >= 0 {
		w := p.dead[i]
		p.dead = slices.Delete(p.dead, i, i+1)
		p.forgetLater(w)
	}
}

// forgetLater forgets w, which has ended, after pastKept. The caller holds mu.
func (p *Page) forgetLater(w *watched) {
	if len(p.past) >= endedKept {
		p.drop(p.past[0])
	}
	p.past = append(p.past, w)
	w.forget = time.AfterFunc(pastKept, func() { p.unregister(w) })
}

// RegisterGate shows the lines of a gate until unregister is called: first those that are down, then those that
// are held, then the longest. g must not be nil.
func (p *Page) RegisterGate(name string, g *budget.Gate) (unregister func()) {
	return register(p, &p.gates, name, g)
}

// RegisterBreaker shows the state of a breaker until unregister is called. b must not be nil.
func (p *Page) RegisterBreaker(name string, b *budget.Breaker) (unregister func()) {
	return register(p, &p.breakers, name, b)
}

// RegisterValues shows a group of values of the program, such as the number of members of a chat room, until
// unregister is called. values is called whenever the group is shown, possibly by several goroutines at the
// same time, and the page waits for it. The first 32 values are shown. values must not be nil.
func (p *Page) RegisterValues(name string, values func() []Value) (unregister func()) {
	return register(p, &p.groups, name, values)
}

// register adds a source to list.
func register[T any](p *Page, list *[]*source[T], name string, of T) (unregister func()) {
	s := &source[T]{clean(name), of}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed() {
		return func() {}
	}
	*list = append(slices.Clone(*list), s) // because sources returns lists
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		*list = slices.DeleteFunc(slices.Clone(*list), func(x *source[T]) bool { return x == s })
	}
}

// Close stops the servers of Listen and the updates of open pages, and waits for the updates: at most 5 s, if a
// browser does not read. A request in progress for a page or for JSON may end later. From then on the handler
// answers 503, and the Page watches no Conn. Close returns nil, and may be called more than once.
func (p *Page) Close() error {
	p.mu.Lock()
	p.close()
	servers, conns := p.servers, p.conns
	for _, w := range p.past {
		w.forget.Stop()
	}
	p.servers, p.conns, p.past, p.dead = nil, nil, nil, nil
	p.mu.Unlock()
	for _, w := range conns {
		w.stop()
	}
	for _, s := range servers {
		_ = s.Close()
	}
	p.running.Wait()
	return nil
}

// closed reports whether Close was called.
func (p *Page) closed() bool { return p.ctx.Err() != nil }
