package queue_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/internal/outbox/queue"
)

// FuzzQueue compares a queue with a plain slice that does the same without any index.
func FuzzQueue(f *testing.F) {
	f.Add(byte(0), []byte{0, 1, 2, 3, 4, 5, 6, 7})
	f.Add(byte(1), []byte{0x00, 0x10, 0x20, 0x31, 0x42, 0x53, 0x64, 0x75})
	f.Add(byte(2), []byte{0xf0, 0xe0, 0xd0, 0xc1, 0xb1, 0xa2, 0x93, 0x84})
	random := rand.New(rand.NewPCG(1, 2))
	for policy := range byte(3) {
		for range 20 { // with many items that expire, in order and out of it
			ops := make([]byte, 200)
			for i := range ops {
				ops[i] = byte(random.IntN(32))<<3 | []byte{0, 1, 1, 1, 3, 5, 6, 7}[random.IntN(8)]
			}
			f.Add(policy, ops)
		}
	}
	f.Fuzz(func(t *testing.T, policy byte, ops []byte) {
		limits := queue.Limits{Messages: 4, Bytes: 12, Full: queue.Policy(policy % 3)}
		w, m := newWorld(limits), &model{limits: limits}
		now := start
		var out *item // returned by Next
		var cursors [2]queue.Cursor[string]
		for i := range cursors {
			w.Follow(&cursors[i])
		}
		for n, op := range ops[:min(len(ops), 200)] {
			arg := int(op >> 3)
			switch op & 7 {
			case 0, 1, 2: // add, of all kinds
				i := &item{Value: fmt.Sprint(n), Size: arg & 7, Free: arg&24 == 24}
				if op&7 == 1 {
					i.Expires = now.Add(time.Duration(arg))
				}
				if op&7 == 2 && !i.Free {
					i.Key = string(rune('a' + arg&3))
				}
				require.Equal(t, m.add(i, now), w.Add(i, now) == nil)
			case 3:
				now = now.Add(time.Duration(arg))
			case 4:
				w.Expire(now)
				m.expire(now)
			case 5:
				if out == nil {
					out = w.Next(now)
					require.Equal(t, m.next(now), out)
				}
			case 6:
				if out != nil {
					w.PutBack(out)
					m.putBack(out)
					out = nil
				}
			case 7:
				if arg < len(m.items) {
					i := m.items[arg]
					w.Remove(i)
					m.remove(i)
				}
			}
			require.Equal(t, m.contents(), w.contents())
			for i := range cursors {
				may := func(it *item) bool { return it.Size%2 == i }
				require.Equal(t, m.first(may), w.Peek(&cursors[i], may))
			}
			require.Equal(t, m.earliest(), w.Earliest())
			count, bytes := m.size()
			messages, size := w.Size()
			require.Equal(t, count, messages)
			require.Equal(t, bytes, size)
		}
		require.ElementsMatch(t, m.dropped, w.dropped)
	})
}

// model is the simplest implementation of a queue.
type model struct {
	limits  queue.Limits
	items   []*item
	dropped []string
}

func (m *model) first(may func(*item) bool) *item {
	for _, i := range m.items {
		if may(i) {
			return i
		}
	}
	return nil
}

func (m *model) size() (count, bytes int) {
	for _, i := range m.items {
		if !i.Free {
			count++
			bytes += i.Size
		}
	}
	return count, bytes
}

func (m *model) contents() (s string) {
	for n, i := range m.items {
		if n > 0 {
			s += " "
		}
		s += i.Value
	}
	return s
}

func (m *model) earliest() (t time.Time) {
	for _, i := range m.items {
		if !i.Expires.IsZero() && (t.IsZero() || i.Expires.Before(t)) {
			t = i.Expires
		}
	}
	return t
}

func (m *model) late(i *item, now time.Time) bool {
	return !i.Expires.IsZero() && !now.Before(i.Expires)
}

func (m *model) remove(gone *item) {
	for n, i := range m.items {
		if i == gone {
			m.items = append(m.items[:n:n], m.items[n+1:]...)
			return
		}
	}
}

func (m *model) drop(i *item, why string) {
	m.remove(i)
	m.dropped = append(m.dropped, i.Value+" "+why)
}

func (m *model) expire(now time.Time) {
	for _, i := range append([]*item(nil), m.items...) {
		if m.late(i, now) {
			m.drop(i, "expired")
		}
	}
}

func (m *model) keyed(key string) *item {
	for _, i := range m.items {
		if key != "" && m.limits.Full == queue.ReplaceKey && i.Key == key {
			return i
		}
	}
	return nil
}

func (m *model) fits(i, old *item) bool {
	count, bytes := m.size()
	if old != nil {
		count, bytes = count-1, bytes-old.Size
	}
	return count < m.limits.Messages && bytes+i.Size <= m.limits.Bytes
}

func (m *model) add(i *item, now time.Time) bool {
	if !i.Free {
		if i.Size > m.limits.Bytes {
			return false
		}
		if !m.fits(i, m.keyed(i.Key)) {
			m.expire(now)
		}
		if m.limits.Full == queue.DropOldest {
			for n := 0; n < len(m.items) && !m.fits(i, nil); {
				if m.items[n].Free {
					n++
					continue
				}
				m.drop(m.items[n], "displaced")
			}
		}
		old := m.keyed(i.Key)
		if !m.fits(i, old) {
			return false
		}
		if old != nil {
			m.drop(old, "replaced")
		}
	}
	m.items = append(m.items, i)
	return true
}

func (m *model) next(now time.Time) *item {
	for len(m.items) > 0 {
		i := m.items[0]
		if !m.late(i, now) {
			m.remove(i)
			return i
		}
		m.drop(i, "expired")
	}
	return nil
}

func (m *model) putBack(i *item) {
	if m.keyed(i.Key) != nil {
		m.dropped = append(m.dropped, i.Value+" replaced")
		return
	}
	m.items = append([]*item{i}, m.items...)
}
