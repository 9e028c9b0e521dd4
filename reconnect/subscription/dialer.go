package subscription

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Dialer returns a Dialer for a venue that takes subscriptions in the URL, where they cost no message. It dials
// by d. The context of a dial has the wanted keys, essential keys first, limited in number by most if it is
// positive: see [KeysFrom]. Messages request other keys, and remove those removed during the dial. Exceptions:
//
//   - A key that was refused is not in the URL until the venue agrees to it.
//   - If a dial with keys is refused ([backoff.ClassSlow] or [backoff.ClassStop], unless Local), dials have no
//     keys until one session was ready. After two refusals in a row it takes two sessions, then four, up to 64.
//
// d must not be nil, and its connections must be comparable, as pointers are. The result has the methods
// Validate, Host, Endpoint and DialTimeout, which call those of d, if any.
func (s *Set[K]) Dialer(d reconnect.Dialer, most int) reconnect.Dialer {
	if most <= 0 {
		most = math.MaxInt
	}
	return &urlDialer[K]{set: s, below: d, most: most}
}

// KeysFrom returns the keys for the URL of a dial by [Set.Dialer], or nil. ctx is the context of the dial, as
// passed to dialer.WebSocket.Prepare, which must put exactly these keys into the URL. The slice must not be
// modified.
func KeysFrom[K comparable](ctx context.Context) []K {
	keys, _ := ctx.Value(keysKey[K]{}).([]K)
	return keys
}

// keysKey is the key of the keys in a context.
type keysKey[K comparable] struct{}

// urlDialer is the Dialer of a Set.
type urlDialer[K comparable] struct {
	set   *Set[K]
	below reconnect.Dialer
	most  int
}

// dialed is a connection that was dialed with keys and is not open yet.
type dialed[K comparable] struct {
	conn conn.Conn
	keys []K
}

// Dial implements [reconnect.Dialer].
func (d *urlDialer[K]) Dial(ctx context.Context) (conn.Conn, error) {
	keys := d.set.urlKeys(d.most)
	if len(keys) == 0 {
		return d.below.Dial(ctx)
	}
	c, err := d.below.Dial(context.WithValue(ctx, keysKey[K]{}, keys))
	switch {
	case err != nil:
		if ctx.Err() == nil {
			d.set.failed(err)
		}
		return nil, err
	case c == nil:
		return nil, nil
	case !reflect.ValueOf(c).Comparable():
		_ = c.CloseNow()
		return nil, backoff.Permanent(fmt.Errorf("subscription: Set.Dialer cannot compare a %T: return a pointer from Dial", c))
	}
	d.set.keep(&dialed[K]{c, keys})
	return c, nil
}

// maxDialed is how many connections may wait to be opened. A Conn has two dials at most; a
// connection that has lost a race is forgotten when one that was dialed later is opened.
const maxDialed = 8

// Validate calls Validate of the Dialer below, if it has one.
func (d *urlDialer[K]) Validate() error {
	if d.below == nil {
		return errors.New("subscription: Set.Dialer needs a Dialer")
	}
	if v, ok := d.below.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}

// Host returns the Host of the Dialer below, "" if it has none.
func (d *urlDialer[K]) Host() string {
	if h, ok := d.below.(interface{ Host() string }); ok {
		return h.Host()
	}
	return ""
}

// Endpoint returns the Endpoint of the Dialer below, or its Host, "" if it has neither.
func (d *urlDialer[K]) Endpoint() string {
	if e, ok := d.below.(interface{ Endpoint() string }); ok {
		return e.Endpoint()
	}
	return d.Host()
}

// DialTimeout returns the DialTimeout of the Dialer below, 0 if it has none.
func (d *urlDialer[K]) DialTimeout(t backoff.Attempt) time.Duration {
	if l, ok := d.below.(interface {
		DialTimeout(backoff.Attempt) time.Duration
	}); ok {
		return l.DialTimeout(t)
	}
	return 0
}

// failed notes that a dial with keys has failed. After a refusal the next dials have no keys.
func (s *Set[K]) failed(err error) {
	if v := backoff.Classify(err); v.Local || v.Class != backoff.ClassSlow && v.Class != backoff.ClassStop {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spoiled++
	s.bare = 1 << min(s.spoiled-1, 6)
}

// keep keeps a connection that was dialed with keys until it is open.
func (s *Set[K]) keep(d *dialed[K]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spoiled = 0
	if s.dialed = append(s.dialed, d); len(s.dialed) > maxDialed {
		s.dialed = slices.Delete(s.dialed, 0, 1)
	}
}

// urlKeys returns the keys for the next dial.
func (s *Set[K]) urlKeys(most int) []K {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bare > 0 {
		return nil
	}
	var keys []K
	for _, essential := range []bool{true, false} {
		for _, e := range s.sorted() {
			if e.essential == essential && e.wanted() && e.trouble == nil && e.most == 0 && len(keys) < most {
				keys = append(keys, e.key)
			}
		}
	}
	return keys
}

// dialedWith returns the keys with which c was dialed, and forgets the connections that were
// dialed before. The caller holds mu.
func (s *Set[K]) dialedWith(c conn.Conn) (keys []K) {
	i := slices.IndexFunc(s.dialed, func(d *dialed[K]) bool { return d.conn == c })
	if i < 0 {
		return nil
	}
	keys = s.dialed[i].keys
	s.dialed = slices.Delete(s.dialed, 0, i+1)
	return keys
}
