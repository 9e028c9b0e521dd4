package queue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/internal/outbox/queue"
)

type item = queue.Item[string]

var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// world is a queue and the list of what it dropped.
type world struct {
	queue.Queue[string]
	dropped []string
}

// Next takes out the first item, whatever it is.
func (w *world) Next(now time.Time) *item {
	return w.take(now, func(*item) bool { return true })
}

// take takes out the first item that may go.
func (w *world) take(now time.Time, may func(*item) bool) *item {
	i := w.Queue.Next(now, nil, may)
	if i != nil {
		w.Remove(i)
	}
	return i
}

var reasons = map[queue.Reason]string{queue.Displaced: "displaced", queue.Replaced: "replaced", queue.Expired: "expired"}

func newWorld(l queue.Limits) *world {
	w := &world{}
	w.Limits = l
	w.Dropped = func(i *item, why queue.Reason) { w.dropped = append(w.dropped, i.Value+" "+reasons[why]) }
	return w
}

// contents are the values of what is queued, in order.
func (w *world) contents() string {
	var values []string
	for i := range w.All() {
		values = append(values, i.Value)
	}
	return strings.Join(values, " ")
}

// add adds items of one byte.
func (w *world) add(t *testing.T, values ...string) []*item {
	t.Helper()
	var items []*item
	for _, v := range values {
		i := &item{Value: v, Size: 1}
		require.NoError(t, w.Add(i, start))
		items = append(items, i)
	}
	return items
}

func TestItemsLeaveInTheOrderInWhichTheyCame(t *testing.T) {
	w := newWorld(queue.Limits{Messages: 3, Bytes: 3})
	items := w.add(t, "a", "b", "c")
	w.Remove(items[1])
	w.Remove(items[1])
	require.Equal(t, "a c", w.contents())
	require.False(t, items[1].Queued())
	first := w.Next(start)
	require.Equal(t, "a", first.Value)
	w.PutBack(first)
	require.Equal(t, "a c", w.contents())
	require.Equal(t, "a", w.Next(start).Value)
	require.Equal(t, "c", w.Next(start).Value)
	require.Nil(t, w.Next(start))
	require.Empty(t, w.dropped)
}

func TestAFullQueueDoesAsItsPolicySays(t *testing.T) {
	for _, test := range []struct {
		policy  queue.Policy
		add     item
		want    string // of the queue, which has "a b" before
		dropped string
		err     string
	}{
		{queue.Refuse, item{Value: "c", Size: 1}, "a b", "", "2 messages of 2 bytes wait"},
		{queue.Refuse, item{Value: "f", Size: 9, Free: true}, "a b f", "", ""},
		{queue.Refuse, item{Value: "c", Size: 3}, "a b", "", "a message of 3 bytes is larger than the limit of 2"},
		{queue.DropOldest, item{Value: "c", Size: 1}, "b c", "a displaced", ""},
		{queue.DropOldest, item{Value: "c", Size: 2}, "c", "a displaced, b displaced", ""},
		{queue.DropOldest, item{Value: "c", Size: 3}, "a b", "", "larger"},
		{queue.ReplaceKey, item{Value: "c", Size: 1}, "a b", "", "wait"},
		{queue.ReplaceKey, item{Value: "c", Size: 1, Key: "other"}, "a b", "", "wait"},
		{queue.ReplaceKey, item{Value: "c", Size: 1, Key: "a"}, "b c", "a replaced", ""},
		{queue.ReplaceKey, item{Value: "c", Size: 2, Key: "a"}, "a b", "", "wait"},
	} {
		t.Run(fmt.Sprint(test.policy, test.add.Value, test.add.Size, test.add.Key), func(t *testing.T) {
			w := newWorld(queue.Limits{Messages: 2, Bytes: 2, Full: test.policy})
			for _, v := range []string{"a", "b"} {
				require.NoError(t, w.Add(&item{Value: v, Size: 1, Key: v}, start))
			}
			err := w.Add(&test.add, start)
			if test.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.err)
			}
			require.Equal(t, test.want, w.contents())
			require.Equal(t, test.dropped, strings.Join(w.dropped, ", "))
		})
	}
}

func TestTheOldestThatTakesRoomIsDisplaced(t *testing.T) {
	w := newWorld(queue.Limits{Messages: 1, Bytes: 10, Full: queue.DropOldest})
	require.NoError(t, w.Add(&item{Value: "free", Size: 5, Free: true}, start))
	w.add(t, "a", "b")
	require.Equal(t, "free b", w.contents())
	messages, bytes := w.Size()
	require.Equal(t, 1, messages)
	require.Equal(t, 1, bytes)
}

func TestWhatHasExpiredIsDropped(t *testing.T) {
	w := newWorld(queue.Limits{Messages: 9, Bytes: 9})
	for _, i := range []*item{
		{Value: "3", Expires: start.Add(3)}, {Value: "never"}, {Value: "1", Expires: start.Add(1)}, {Value: "2", Expires: start.Add(2)},
	} {
		require.NoError(t, w.Add(i, start))
	}
	require.Equal(t, start.Add(1), w.Earliest())
	w.Expire(start)
	require.Empty(t, w.dropped)
	w.Expire(start.Add(2))
	require.Equal(t, start.Add(3), w.Earliest())
	require.Equal(t, []string{"1 expired", "2 expired"}, w.dropped)
	require.Equal(t, "3 never", w.contents())
	require.Equal(t, "never", w.Next(start.Add(3)).Value)
	require.Equal(t, []string{"1 expired", "2 expired", "3 expired"}, w.dropped)
	require.Zero(t, w.Earliest())
}

// An expired item does not keep a new one out.
func TestWhatHasExpiredMakesRoom(t *testing.T) {
	w := newWorld(queue.Limits{Messages: 1, Bytes: 1, Full: queue.Refuse})
	require.NoError(t, w.Add(&item{Value: "late", Size: 1, Expires: start.Add(1)}, start))
	require.Error(t, w.Add(&item{Value: "new", Size: 1}, start))
	require.NoError(t, w.Add(&item{Value: "new", Size: 1}, start.Add(1)))
	require.Equal(t, "new", w.contents())
	require.Equal(t, []string{"late expired"}, w.dropped)
}

// While Next's item was out to be sent, a newer one with its key has replaced it.
func TestPutBackGivesWayToTheNewerOneWithItsKey(t *testing.T) {
	w := newWorld(queue.Limits{Messages: 9, Bytes: 9, Full: queue.ReplaceKey})
	old := &item{Value: "old", Key: "k"}
	require.NoError(t, w.Add(old, start))
	require.Same(t, old, w.Next(start))
	require.NoError(t, w.Add(&item{Value: "new", Key: "k"}, start))
	w.PutBack(old)
	require.Equal(t, "new", w.contents())
	require.Equal(t, []string{"old replaced"}, w.dropped)
}

func TestAllMayRemoveWhatItYields(t *testing.T) {
	w := newWorld(queue.Limits{Messages: 9, Bytes: 9})
	w.add(t, "a", "b", "c", "d")
	for i := range w.All() {
		if i.Value != "c" {
			w.Remove(i)
		}
	}
	require.Equal(t, "c", w.contents())
}

// Next leaves an item that may not go where it is, and drops the expired items before it.
func TestNextSkipsWhatMayNotGo(t *testing.T) {
	w := newWorld(queue.Limits{Messages: 9, Bytes: 9})
	for _, name := range []string{"a", "late", "b", "c"} {
		i := &item{Value: name, Size: 1}
		if name == "late" {
			i.Expires = start
		}
		require.NoError(t, w.Add(i, start.Add(-1)))
	}
	not := func(name string) func(*item) bool { return func(i *item) bool { return i.Value != name } }
	require.Equal(t, "b", w.take(start, not("a")).Value)
	require.Equal(t, []string{"late expired"}, w.dropped)
	require.Nil(t, w.Queue.Next(start, nil, func(*item) bool { return false }))
	require.Equal(t, "a", w.Next(start).Value)
	require.Equal(t, "c", w.Next(start).Value)
}

// An item that may not go is looked at once, however often the next one is asked for.
func TestCursorPassesEachItemOnce(t *testing.T) {
	const others = 1000
	q := queue.Queue[string]{Limits: queue.Limits{Messages: 2 * others, Bytes: 2 * others}}
	looks := 0
	may := func(i *item) bool { looks++; return i.Value == "mine" }
	add := func(value string) *item {
		i := &item{Value: value, Size: 1}
		require.NoError(t, q.Add(i, start))
		return i
	}
	var c queue.Cursor[string]
	q.Follow(&c)
	var all []*item
	for range others {
		all = append(all, add("other"))
	}
	for range others / 2 {
		require.Nil(t, q.Peek(&c, may))
		mine := add("mine")
		require.Same(t, mine, q.Peek(&c, may))
		require.Same(t, mine, q.Next(start, &c, may))
		q.Remove(mine)
		q.Remove(all[len(all)-1]) // to which the cursor points
		all = append(all[:len(all)-1], add("other"))
	}
	require.LessOrEqual(t, looks, others+3*others/2)

	back := &item{Value: "mine", Size: 1}
	q.PutBack(back)
	require.Same(t, back, q.Peek(&c, may))
	q.Leave(&c)
	q.Remove(back)
	looks = 0
	require.Nil(t, q.Peek(&c, may))
	require.Nil(t, q.Peek(&c, may))
	require.Equal(t, 2*others, looks) // it has no effect any more
}
