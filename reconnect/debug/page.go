package debug

import (
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/budget"
)

// Page shows the connections of a program. It is an [http.Handler] that fits any path, and answers GET and
// HEAD. Its methods are safe for concurrent use, but must not be called in a function of its Options, of
// ConnOptions or of RegisterValues.
//
// A query selects:
//
//	show=WORD    only the Conns that are ended, away, flapping, ready or closed
//	all          the worst 4000 of these, not just the worst hundred
//	conn=ID      one Conn, with its sessions and its events
//	json         a Snapshot as JSON
//	token=TOKEN  see Options.Token
//
// A Page neither keeps a Conn open nor closes it.
type Page struct {
	o       *Options
	token   *token         // or nil if none is required
	boot    string         // differs between two Pages
	running sync.WaitGroup // the servers

	mu       sync.Mutex // guards what follows
	closed   bool
	lastID   uint64
	conns    map[uint64]*watched
	past     []*watched // those of conns that are forgotten after a while, the first first
	dead     []*watched // those of conns that have ended by themselves and have no successor, likewise
	gates    []*source[*budget.Gate]
	breakers []*source[*budget.Breaker]
	groups   []*source[func() []Value]
	servers  []*http.Server
}

// source is something other than a Conn that was registered.
type source[T any] struct {
	name string
	of   T
}

// A Conn that was closed, or has a successor, is shown for pastKept after that, and of such Conns the last
// endedKept are shown. Of the Conns that have ended by themselves and have no successor the last deadKept are
// shown.
const (
	pastKept  = 10 * time.Minute
	endedKept = 256
	deadKept  = 4096
)

// New returns a Page that shows nothing yet. Close it at the end of the program.
func New(o *Options) *Page {
	p := &Page{o: o.withDefaults(), boot: rand.Text(), conns: map[uint64]*watched{}}
	p.token, p.o.Token = newToken(p.o.Token), ""
	return p
}

// Register shows c under a name, which need not be unique, from its next event on, until unregister is called.
//
// A Conn that the program has closed needs no unregister: it is shown for 10 min, or until 256 others have
// ended after it. The last 4096 Conns that have ended by themselves are each shown until unregister is called,
// or, once a Conn is registered with the same name, as long as a closed one.
//
// c must not be nil; o may be nil. After Close Register does nothing.
func (p *Page) Register(name string, c *reconnect.Conn, o *ConnOptions) (unregister func()) {
	endpoint := c.Endpoint()
	if p.o.Endpoint != nil {
		endpoint = p.o.Endpoint(endpoint)
	}
	endpoint = clean(endpoint)
	w := &watched{page: p, name: clean(name), endpoint: endpoint, server: serverOf(endpoint), conn: c}
	if o != nil {
		w.o = *o
	}
	p.mu.Lock()
	if p.closed {
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
	return func() {
		w.stop()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.drop(w)
	}
}

// drop forgets w. The caller must hold mu.
func (p *Page) drop(w *watched) {
	delete(p.conns, w.id)
	is := func(x *watched) bool { return x == w }
	p.past, p.dead = slices.DeleteFunc(p.past, is), slices.DeleteFunc(p.dead, is)
}

// ended notes that w has ended, by itself or because the program has closed it.
func (p *Page) ended(w *watched, byItself bool) {
	w.stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.conns[w.id] == nil:
		return
	case byItself:
		p.dead = append(p.dead, w)
	default:
		p.forgetLater(w)
	}
	p.prune(time.Now())
}

// succeed notes that a Conn is registered with a name. If a Conn with that name has ended by itself, the new
// one is its successor. The caller must hold mu.
func (p *Page) succeed(name string) {
	if i := slices.IndexFunc(p.dead, func(w *watched) bool { return w.name == name }); i >= 0 {
		p.forgetLater(p.dead[i])
		p.dead = slices.Delete(p.dead, i, i+1)
	}
	p.prune(time.Now())
}

// forgetLater lets prune forget w after pastKept. The caller must hold mu.
func (p *Page) forgetLater(w *watched) {
	w.forget = time.Now().Add(pastKept)
	p.past = append(p.past, w)
}

// prune forgets the Conns that are not to be shown any more. The caller must hold mu.
func (p *Page) prune(now time.Time) {
	for len(p.past) > endedKept || len(p.past) > 0 && !p.past[0].forget.After(now) {
		p.drop(p.past[0])
	}
	for len(p.dead) > deadKept {
		p.drop(p.dead[0])
	}
}

// RegisterGate shows the lines of a gate until unregister is called: first those that are down, then those
// that are held, then the longest. g must not be nil.
func (p *Page) RegisterGate(name string, g *budget.Gate) (unregister func()) {
	return register(p, &p.gates, name, g)
}

// RegisterBreaker shows the state of a breaker until unregister is called. b must not be nil.
func (p *Page) RegisterBreaker(name string, b *budget.Breaker) (unregister func()) {
	return register(p, &p.breakers, name, b)
}

// RegisterValues shows a group of values, such as the number of members of a chat room, until unregister is
// called. values is called whenever the group is shown, possibly concurrently, and the page waits for it. The
// first 32 values are shown. values must not be nil.
func (p *Page) RegisterValues(name string, values func() []Value) (unregister func()) {
	return register(p, &p.groups, name, values)
}

// register adds a source to list.
func register[T any](p *Page, list *[]*source[T], name string, of T) (unregister func()) {
	s := &source[T]{clean(name), of}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return func() {}
	}
	*list = append(slices.Clone(*list), s) // because others reads the list without mu
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		*list = slices.DeleteFunc(slices.Clone(*list), func(x *source[T]) bool { return x == s })
	}
}

// Listen serves the page at address, on every path, until Close, and returns the URL of the page on this
// machine. An address without a host, such as ":6060", means 127.0.0.1, and port 0 means any free port.
// Whatever the address, Options.Allow decides which clients may see the page. Behind anything that forwards
// TCP, such as a container port, set [Options].Token.
func (p *Page) Listen(address string) (url string, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("debug: the address %q has not the form host:port, such as :6060", address)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return "", fmt.Errorf("debug: %w", err)
	}
	server := &http.Server{
		Handler: p, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = listener.Close()
		return "", fmt.Errorf("debug: the page is closed: %w", net.ErrClosed)
	}
	p.servers = append(p.servers, server)
	p.running.Go(func() { _ = server.Serve(listener) }) // Close waits for it
	return urlOf(listener.Addr()), nil
}

// urlOf returns the URL by which this machine reaches a listener.
func urlOf(a net.Addr) string {
	if t, ok := a.(*net.TCPAddr); ok && t.IP.IsUnspecified() {
		return fmt.Sprintf("http://localhost:%d/", t.Port)
	}
	return "http://" + a.String() + "/"
}

// Close stops the servers of Listen. A request in progress may end later. From then on the handler answers
// 503, and the Page watches no Conn. Close returns nil, and may be called more than once.
func (p *Page) Close() error {
	p.mu.Lock()
	p.closed = true
	servers, conns := p.servers, p.conns
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

// isClosed reports whether Close was called.
func (p *Page) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}
