package bridge_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/bridge"
)

type options = bridge.Options[string, string]

// oneSecond is a policy without jitter.
var oneSecond = &backoff.Exponential{Base: time.Second, Factor: 1, Jitter: backoff.JitterNone}

// withStore runs a test with a store of the numbers 1 to last.
func withStore(t *testing.T, p *store, o *options, f func(s *scene)) {
	t.Helper()
	if o.Snapshot == nil && o.Ask == nil {
		o.Past = p.past
	}
	inScene(t, o, func(s *scene) {
		p.s = s
		s.send(item{Key: "a", Last: 5, Snapshot: true})
		s.want("a: snapshot 5")
		f(s)
	})
}

func TestAFailedFetchIsRepeatedByItself(t *testing.T) {
	p := &store{last: 8, errs: []error{errFetch, errFetch}}
	var retries []string
	o := &options{Policy: oneSecond, OnRetry: func(key string, err error, wait time.Duration) {
		retries = append(retries, fmt.Sprint(key, " ", err, " ", wait))
	}}
	withStore(t, p, o, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1})
		s.want("a: stale 6-")
		time.Sleep(2*time.Second - 1)
		s.want()
		time.Sleep(time.Nanosecond)
		s.want("a: past 6", "a: past 7", "a: past 8", "a: healed 8")
		require.Equal(t, []string{"a 500 1s", "a 500 1s"}, retries)
		require.Equal(t, uint64(2), s.b.Stats().Failed)
	})
}

// A server that says when to come again is not asked before.
func TestAFetchThatIsToldToWaitWaits(t *testing.T) {
	p := &store{last: 6, errs: []error{backoff.RetryAfter(errFetch, 10*time.Second)}}
	withStore(t, p, &options{Policy: oneSecond}, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1})
		time.Sleep(11*time.Second - 1)
		s.want("a: stale 6-")
		time.Sleep(time.Nanosecond)
		s.want("a: past 6", "a: healed 6")
	})
}

func TestAFetchThatHangsIsEnded(t *testing.T) {
	p := &store{last: 8, takes: time.Hour}
	var retries []error
	o := &options{Policy: oneSecond, Timeout: 3 * time.Second, OnRetry: func(_ string, err error, _ time.Duration) { retries = append(retries, err) }}
	withStore(t, p, o, func(s *scene) {
		s.live("a", 9)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Len(t, retries, 1)
		require.ErrorContains(t, retries[0], "not answered within 3s")
		require.ErrorIs(t, retries[0], context.DeadlineExceeded)
		s.set(func() { p.takes = 0 })
		time.Sleep(time.Second)
		s.want("a: stale 6-8", "a: past 6", "a: past 7", "a: past 8", "a: live 9", "a: healed 9")
	})
}

// What the server says between a fetch and the new session would be missing.
func TestAFetchWaitsForTheNextSession(t *testing.T) {
	p := &store{last: 7}
	withStore(t, p, &options{}, func(s *scene) {
		s.down()
		time.Sleep(time.Hour)
		s.wantAsked()
		s.up()
		s.wantAsked("a after 5", "a after 7")
		s.want("a: stale 6-", "a: past 6", "a: past 7", "a: healed 7")
	})
}

// A mark of reconnect.Options.MarkRefetch is no gap, and says that everything is subscribed.
func TestAFetchWaitsForTheMark(t *testing.T) {
	p := &store{last: 7}
	withStore(t, p, &options{AwaitSubscribed: true}, func(s *scene) {
		mark := func(session uint64) { s.source.next <- &reconnect.Seam{Session: session, Refetch: true} }
		mark(1)
		s.wantAsked()
		s.seam(reconnect.Seam{Lost: 1})
		time.Sleep(time.Hour)
		s.want("a: stale 6-")
		s.wantAsked()
		mark(2)
		s.want("a: past 6", "a: past 7", "a: healed 7")
		s.wantAsked("a after 5", "a after 7")
	})
}

func TestAFetchWaitsForTheSubscription(t *testing.T) {
	p := &store{last: 7}
	withStore(t, p, &options{AwaitSubscribed: true}, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1})
		time.Sleep(time.Hour)
		s.wantAsked()
		s.b.Refetch("a", 0)
		s.want("a: stale 6-", "a: past 6", "a: past 7", "a: healed 7")
		s.wantAsked("a after 5", "a after 7")
		s.seam(reconnect.Seam{Lost: 1})
		s.live("a", 9) // it is subscribed
		s.set(func() { p.last = 9 })
		s.want("a: stale 8-")
		time.Sleep(3 * time.Second)
		s.want("a: past 8", "a: live 9", "a: healed 9")
	})
}

func TestALiveMessageWithoutAGapHealsAtOnce(t *testing.T) {
	p := &store{last: 5, takes: time.Hour}
	withStore(t, p, &options{}, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1})
		s.live("a", 5, 6)
		s.want("a: stale 6-", "a: live 6", "a: healed 6")
		s.live("a", 8, 7)
		s.want("a: stale 7-7", "a: live 7", "a: live 8", "a: healed 8")
		s.send(item{Key: "a", Epoch: "y", Last: 5, Snapshot: true})
		s.seam(reconnect.Seam{Lost: 1})
		s.send(item{Key: "a", Epoch: "y", Last: 6})
		s.want("a: snapshot 5@y", "a: stale 6-@y", "a: live 6@y", "a: healed 6@y")
	})
}

func TestAnOverlapOrAResumeNeedsNoFetch(t *testing.T) {
	withStore(t, &store{last: 5}, &options{}, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1, Planned: true, Overlapped: true})
		s.seam(reconnect.Seam{Lost: 1, Resumed: true})
		s.live("a", 5, 6)
		s.want("a: live 6")
		s.wantAsked()
		s.seam(reconnect.Seam{Dropped: 3})
		s.want("a: stale 7-", "a: healed 6")
	})
}

// Without numbers nobody can tell what the next session repeats.
func TestAStreamWithoutNumbersIsFetchedAfterAnOverlap(t *testing.T) {
	p := new(store)
	inScene(t, &options{Snapshot: p.snapshot}, func(s *scene) {
		p.s = s
		s.send(item{Key: "a", Snapshot: true})
		s.want("a: snapshot 0")
		s.seam(reconnect.Seam{Lost: 1, Planned: true, Overlapped: true})
		s.want("a: stale 1-", "a: snapshot 0", "a: healed 0")
	})
}

// A seam during a fetch asks for another one, because what it has brought may be from before.
func TestASeamDuringAFetchAsksForAnother(t *testing.T) {
	p := &store{last: 7, takes: time.Second}
	withStore(t, p, &options{}, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1})
		time.Sleep(1500 * time.Millisecond)
		s.seam(reconnect.Seam{Lost: 1})
		time.Sleep(500 * time.Millisecond)
		s.want("a: stale 6-", "a: past 6", "a: past 7")
		time.Sleep(time.Second)
		s.want("a: healed 7")
		s.wantAsked("a after 5", "a after 7", "a after 7")
	})
}

// The fetch returns while the reader has the seam, and knows nothing of what came after the lost session.
func TestAFetchThatReturnsDuringASeamHealsNothing(t *testing.T) {
	p := &store{last: 7, takes: time.Second}
	withStore(t, p, &options{}, func(s *scene) {
		s.live("a", 8)
		s.want("a: stale 6-7")
		s.rests = 1500 * time.Millisecond
		s.seam(reconnect.Seam{Lost: 1})
		time.Sleep(s.rests)
		s.want("a: past 6", "a: past 7", "a: live 8")
		time.Sleep(time.Second)
		s.want("a: healed 8")
		s.wantAsked("a after 5", "a after 8")
	})
}

func TestOtherStreamsGoOnDuringAFetch(t *testing.T) {
	p := &store{last: 7, takes: time.Minute}
	withStore(t, p, &options{Timeout: time.Hour}, func(s *scene) {
		s.live("b", 100, 101)
		s.live("a", 8)
		s.live("b", 102)
		s.want("b: live 100", "b: live 101", "a: stale 6-7", "b: live 102")
		time.Sleep(time.Minute)
		s.want("a: past 6", "a: past 7", "a: live 8", "a: healed 8")
		s.wantAsked("a after 5")
	})
}

func TestFewFetchesRunAtOnce(t *testing.T) {
	p := &store{last: 7, takes: time.Second}
	withStore(t, p, &options{Fetches: 2}, func(s *scene) {
		for key := range 5 {
			s.live(fmt.Sprint(key), 5)
		}
		s.seam(reconnect.Seam{Lost: 1})
		require.Equal(t, 2, s.calls())
		time.Sleep(time.Second)
		require.Equal(t, 4, s.calls())
		time.Sleep(time.Second)
		require.Equal(t, 6, s.calls())
	})
}

func TestWithoutAPastTheReaderLearnsWhatIsLost(t *testing.T) {
	inScene(t, &options{}, func(s *scene) {
		s.live("a", 5, 8)
		s.want("a: live 5", "a: stale 6-7", "a: lost 6-7", "a: live 8", "a: healed 8")
		s.seam(reconnect.Seam{Lost: 1})
		s.want("a: stale 9-")
		s.live("a", 12)
		s.want("a: lost 9-11", "a: live 12", "a: healed 12")
	})
}

func TestWhatIsTooOldIsLostWithoutASnapshot(t *testing.T) {
	p := &store{from: 20, last: 30}
	withStore(t, p, &options{}, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1})
		s.live("a", 31)
		s.want("a: stale 6-", "a: lost 6-30", "a: live 31", "a: healed 31")
	})
}

// What came after the seam is not too old, and no live message has shown how far it goes.
func TestAStreamIsFetchedOnAfterWhatIsTooOld(t *testing.T) {
	p := &store{from: 7, last: 9, errs: []error{errFetch}}
	withStore(t, p, &options{Policy: oneSecond}, func(s *scene) {
		s.live("a", 7)
		s.want("a: stale 6-6")
		s.seam(reconnect.Seam{Lost: 1}) // 8 and 9 are sent meanwhile
		time.Sleep(time.Second)
		s.want("a: lost 6-6", "a: live 7", "a: past 8", "a: past 9", "a: healed 9")
		s.wantAsked("a after 5", "a after 5", "a after 7", "a after 9")
	})
}

// If the rest is too old as well, the next live message tells how much is lost.
func TestAStreamWhoseRestIsTooOldStaysStale(t *testing.T) {
	p := &store{from: 9, last: 9, errs: []error{errFetch}}
	withStore(t, p, &options{Policy: oneSecond}, func(s *scene) {
		s.live("a", 7)
		s.seam(reconnect.Seam{Lost: 1})
		time.Sleep(time.Hour)
		s.want("a: stale 6-6", "a: lost 6-6", "a: live 7")
		s.wantAsked("a after 5", "a after 5", "a after 7")
		s.live("a", 10)
		s.want("a: lost 8-9", "a: live 10", "a: healed 10")
		s.wantAsked()
	})
}

func TestAPastThatLacksWhatIsLiveIsAskedForAWhile(t *testing.T) {
	p := &store{last: 6}
	withStore(t, p, &options{Policy: oneSecond, Patience: 2500 * time.Millisecond}, func(s *scene) {
		s.live("a", 9)
		s.want("a: stale 6-8", "a: past 6")
		s.set(func() { p.last = 7 })
		time.Sleep(time.Second)
		s.want("a: past 7")
		time.Sleep(2500*time.Millisecond - 1)
		s.want()
		time.Sleep(time.Nanosecond)
		s.want("a: lost 8-8", "a: live 9", "a: healed 9")
	})
}

func TestASnapshotThatDoesNotReachWhatIsHeldIsOfNoUse(t *testing.T) {
	p := &store{last: 7}
	withStore(t, p, &options{Snapshot: p.snapshot, Policy: oneSecond}, func(s *scene) {
		s.live("a", 9)
		s.want("a: stale 6-8")
		s.set(func() { p.last = 8 })
		time.Sleep(time.Second)
		s.want("a: snapshot 8", "a: live 9", "a: healed 9")
	})
}

// Nothing has happened while the session was down.
func TestASnapshotThatEndsAtTheCursorHeals(t *testing.T) {
	p := &store{last: 5}
	withStore(t, p, &options{Snapshot: p.snapshot}, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1})
		s.want("a: stale 6-", "a: snapshot 5", "a: healed 5")
		s.wantAsked("a snapshot")
	})
}

// What is held has numbers, and nobody knows which of them the snapshot contains.
func TestASnapshotWithoutANumberCannotBeJoined(t *testing.T) {
	p := &store{}
	var retries []error
	o := &options{Snapshot: p.snapshot, Policy: oneSecond, OnRetry: func(_ string, err error, _ time.Duration) { retries = append(retries, err) }}
	inScene(t, o, func(s *scene) {
		p.s = s
		s.live("a", 2)
		require.Len(t, retries, 1)
		require.ErrorContains(t, retries[0], "has no number")
		s.set(func() { p.last = 2 })
		time.Sleep(time.Second)
		s.want("a: stale 1-", "a: snapshot 2", "a: healed 2")
		require.Zero(t, s.b.Stats().Held)
	})
}

func TestASnapshotCanComeInTheStream(t *testing.T) {
	p := &store{}
	withStore(t, p, &options{Ask: p.ask, Policy: oneSecond}, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1})
		time.Sleep(time.Hour)
		s.wantAsked()
		s.live("a", 8)
		s.send(item{Key: "a", Last: 7, Snapshot: true}) // that of the subscription
		s.want("a: stale 6-", "a: snapshot 7", "a: live 8", "a: healed 8")
		s.live("a", 10)
		s.wantAsked("a asked")
		time.Sleep(10 * time.Second)
		s.wantAsked("a asked")
		s.send(item{Key: "a", Last: 10, Snapshot: true})
		s.want("a: stale 9-9", "a: snapshot 10", "a: healed 10")
	})
}

// The last seam came during the fetch that brought what was missing, so another fetch follows. Numbers that the second fetch lacks have
// Patience of their own.
func TestPatienceBeginsAnewWhenNothingIsMissing(t *testing.T) {
	p := &store{last: 5, takes: time.Second}
	past := func(ctx context.Context, r bridge.Request[string]) ([]item, error) {
		page, err := p.past(ctx, r)
		return page, cmp.Or(err, io.EOF)
	}
	inScene(t, &options{Past: past, Policy: oneSecond, Patience: 2500 * time.Millisecond}, func(s *scene) {
		p.s = s
		s.send(item{Key: "a", Last: 5, Snapshot: true})
		s.live("a", 7)
		time.Sleep(2500 * time.Millisecond) // the second fetch has begun
		s.set(func() { p.last = 6 })
		s.seam(reconnect.Seam{Lost: 1})
		time.Sleep(time.Second)
		s.want("a: snapshot 5", "a: stale 6-6", "a: past 6", "a: live 7")
		s.live("a", 9)
		time.Sleep(time.Second)
		s.set(func() { p.last = 8 })
		time.Sleep(2 * time.Second)
		s.want("a: past 8", "a: live 9", "a: healed 9")
	})
}

// Neither a seam nor a new subscription makes the wait shorter.
func TestAnAskThatIsToldToWaitWaits(t *testing.T) {
	p := &store{errs: []error{backoff.RetryAfter(errFetch, time.Minute)}}
	withStore(t, p, &options{Ask: p.ask, Policy: oneSecond}, func(s *scene) {
		s.live("a", 7)
		time.Sleep(10 * time.Second)
		s.wantAsked("a asked")
		s.seam(reconnect.Seam{Lost: 1})
		s.b.Refetch("a", 2)
		time.Sleep(50 * time.Second)
		s.wantAsked()
		time.Sleep(2 * time.Second)
		s.wantAsked("a asked")
	})
}

// The subscription of a session that replaces another brings a snapshot, which is behind what the
// old session has brought. It must not take the stream back.
func TestASnapshotOfTheNextSessionDoesNotGoBack(t *testing.T) {
	p := &store{}
	withStore(t, p, &options{Ask: p.ask}, func(s *scene) {
		s.live("a", 6, 7, 8)
		s.want("a: live 6", "a: live 7", "a: live 8")
		s.seam(reconnect.Seam{Lost: 1, Planned: true, Overlapped: true})
		s.send(item{Key: "a", Last: 6, Snapshot: true})
		s.live("a", 7, 8, 9)
		s.want("a: live 9")
		s.send(item{Key: "a", Last: 1, Snapshot: true}) // inside a session the server counts anew
		s.want("a: snapshot 1")
		s.seam(reconnect.Seam{Lost: 1, Planned: true, Overlapped: true})
		s.send(item{Key: "a", Last: 4, Snapshot: true})
		s.want("a: snapshot 4")
		require.Empty(t, s.asked)
	})
}

func TestAStreamIsFollowedFromWhereItWasStored(t *testing.T) {
	p := &store{last: 7}
	withStore(t, p, &options{}, func(s *scene) {
		require.NoError(t, s.b.Follow("b", bridge.Cursor{Offset: 5}))
		s.want("b: stale 6-", "b: past 6", "b: past 7", "b: healed 7")
		require.Error(t, s.b.Follow("b", bridge.Cursor{}))
		require.Equal(t, []int{2, 0}, []int{s.b.Stats().Streams, s.b.Stats().Stale})
		s.b.Forget("b")
		require.Equal(t, 1, s.b.Stats().Streams)
	})
}

func TestABrokenLoopEndsItsFetchesAndTheNextGoesOn(t *testing.T) {
	p := &store{last: 7, takes: time.Second}
	withStore(t, p, &options{}, func(s *scene) {
		s.live("a", 8)
		s.stop()
		require.ErrorIs(t, <-s.ended, context.Canceled)
		s.wantAsked("a after 5")
		s.read()
		time.Sleep(time.Second)
		s.want("a: stale 6-7", "a: past 6", "a: past 7", "a: live 8", "a: healed 8")
		s.wantAsked("a after 5")
	})
}

// A body of the loop that panics has taken its event, and no other.
func TestWhatFollowsAPanicIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{t: t, ended: make(chan error, 1)}
		s.source = &scriptedSource{next: make(chan any), state: reconnect.StateReady, ready: make(chan struct{})}
		b, err := bridge.New(&options{Parse: parseItem})
		require.NoError(t, err)
		for _, key := range []string{"a", "b", "c"} {
			require.NoError(t, b.Follow(key, bridge.Cursor{Offset: 5}))
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		require.PanicsWithError(t, "mine", func() {
			for range b.Events(ctx, s.source) {
				panic(errors.New("mine"))
			}
		})
		var got []string
		for e := range b.Events(ctx, s.source) {
			if got = append(got, eventWords(e)); len(got) == 2 {
				break
			}
		}
		require.Equal(t, []string{"b: stale 6-", "c: stale 6-"}, got)
	})
}

func TestEventsEndWithTheSource(t *testing.T) {
	withStore(t, &store{last: 7, takes: time.Hour}, &options{Timeout: time.Hour}, func(s *scene) {
		s.live("a", 8)
		s.source.next <- errClosed
		require.ErrorIs(t, <-s.ended, errClosed)
		s.ended <- nil
	})
}

func TestAServerThatCountsAnewWithoutAnEpochIsReported(t *testing.T) {
	withStore(t, &store{}, &options{}, func(s *scene) {
		for range 1001 {
			s.live("a", 2)
		}
		s.want("other: a thousand messages had numbers that had come before")
	})
}

func TestWhatIsNoItemIsPassedOn(t *testing.T) {
	withStore(t, &store{}, &options{Streams: 1}, func(s *scene) {
		s.source.next <- reconnect.Message{Message: conn.TextMessage("welcome"), Session: 1}
		s.live("b", 1)
		s.want("other: welcome", `other: b "" 0 1`)
		require.ErrorContains(t, s.b.Follow("c", bridge.Cursor{}), "Options.Streams: 1")
	})
}

// numbers is a Source of as many messages as one asks for, in order.
type numbers struct{ left int }

func (n *numbers) Read(context.Context, []byte) (reconnect.Message, error) {
	if n.left--; n.left < 0 {
		return reconnect.Message{}, io.EOF
	}
	return reconnect.Message{Session: 1}, nil
}
func (n *numbers) State() reconnect.State                             { return reconnect.StateReady }
func (n *numbers) Await(ctx context.Context, _ reconnect.State) error { return errors.New("never") }

// inOrder returns a Bridge whose parser numbers the messages of 100 streams.
func inOrder(tb testing.TB) *bridge.Bridge[int, uint64] {
	var last [100]uint64
	key := 0
	b, err := bridge.New(&bridge.Options[int, uint64]{Parse: func(reconnect.Message) (bridge.Item[int, uint64], bool) {
		key = (key + 1) % len(last)
		last[key]++
		return bridge.Item[int, uint64]{Key: key, Epoch: "epoch", Last: last[key], Value: last[key]}, true
	}})
	require.NoError(tb, err)
	return b
}

func TestALiveMessageInOrderCostsNoAllocation(t *testing.T) {
	b := inOrder(t)
	read := func(n int) {
		for range b.Events(t.Context(), &numbers{left: n}) {
		}
	}
	read(1000)
	few := testing.AllocsPerRun(10, func() { read(100) })
	many := testing.AllocsPerRun(10, func() { read(10_000) })
	require.InDelta(t, few, many, 3, "the loop allocates, a message does not")
}

func BenchmarkBridgeLive(b *testing.B) {
	b.ReportAllocs()
	bridge := inOrder(b)
	for range bridge.Events(b.Context(), &numbers{left: b.N}) {
	}
}

func TestSecondLoopOverEventsEndsWithError(t *testing.T) {
	withStore(t, &store{}, &options{}, func(s *scene) {
		var errs []error
		for _, err := range s.b.Events(t.Context(), s.source) {
			errs = append(errs, err)
		}
		require.Len(t, errs, 1)
		require.ErrorContains(t, errs[0], "another goroutine ranges over the events")
		s.live("a", 6)
		s.want("a: live 6")
	})
}

func TestStaleEventNamesMissingNumbers(t *testing.T) {
	withStore(t, &store{last: 7}, &options{}, func(s *scene) {
		s.live("a", 8)
		s.want("a: stale 6-7", "a: past 6", "a: past 7", "a: live 8", "a: healed 8")
		require.ErrorIs(t, s.stale[0], bridge.ErrGap)
		require.EqualError(t, s.stale[0], "numbers 6 to 7 are missing")
	})
}

// A stream that is complete without its fetch, or forgotten, leaves the slot to another stream.
func TestUnneededFetchMakesRoomForNext(t *testing.T) {
	for name, end := range map[string]func(s *scene){
		"complete":  func(s *scene) { s.live("a", 6) },
		"forgotten": func(s *scene) { s.b.Forget("a") },
	} {
		t.Run(name, func(t *testing.T) {
			p := &store{last: 5, takes: time.Hour}
			withStore(t, p, &options{Fetches: 1, Timeout: 2 * time.Hour}, func(s *scene) {
				s.b.Refetch("a", 0)
				require.NoError(t, s.b.Follow("b", bridge.Cursor{Offset: 5}))
				s.wantAsked("a after 5")
				end(s)
				s.wantAsked("b after 5")
			})
		})
	}
}

// The snapshot of a new subscription has the whole Timeout to come.
func TestRefetchPostponesAsk(t *testing.T) {
	p := &store{}
	withStore(t, p, &options{Ask: p.ask, Timeout: 10 * time.Second}, func(s *scene) {
		s.live("a", 7)
		s.wantAsked("a asked")
		time.Sleep(5 * time.Second)
		s.b.Refetch("a", 0)
		time.Sleep(9 * time.Second)
		s.wantAsked()
		time.Sleep(time.Second)
		s.wantAsked("a asked")
	})
}

// Numbers are missing between the snapshot and the held message. They are fetched from the snapshot on,
// because the fetch in progress may be of an earlier count.
func TestLiveSnapshotBeforeGapHealsNothing(t *testing.T) {
	p := &store{last: 9, takes: time.Second}
	withStore(t, p, &options{}, func(s *scene) {
		s.live("a", 10)
		s.send(item{Key: "a", Last: 7, Snapshot: true})
		s.want("a: stale 6-9", "a: snapshot 7")
		time.Sleep(time.Second)
		s.want("a: past 8", "a: past 9", "a: live 10", "a: healed 10")
		s.wantAsked("a after 5", "a after 7")
	})
}

// The past of the first gap is too old, and that of the second one is not.
func TestGapBehindLossIsFetched(t *testing.T) {
	p := &store{from: 9, last: 10, takes: time.Second}
	withStore(t, p, &options{}, func(s *scene) {
		s.live("a", 8, 11)
		time.Sleep(2 * time.Second)
		s.want("a: stale 6-7", "a: lost 6-7", "a: live 8", "a: past 9", "a: past 10", "a: live 11", "a: healed 11")
	})
}

// The snapshot that has come ends before the held message. The next one has the whole Timeout to come.
func TestSnapshotBeforeGapPostponesAsk(t *testing.T) {
	p := &store{}
	withStore(t, p, &options{Ask: p.ask, Timeout: 10 * time.Second}, func(s *scene) {
		s.live("a", 8)
		s.wantAsked("a asked")
		time.Sleep(5 * time.Second)
		s.send(item{Key: "a", Last: 6, Snapshot: true})
		time.Sleep(9 * time.Second)
		s.wantAsked()
		time.Sleep(time.Second)
		s.wantAsked("a asked")
		s.want("a: stale 6-7", "a: snapshot 6")
	})
}

// Such as the verdict of a server whose response comes at the end of Timeout.
func TestErrorOfFetchIsKeptAfterTimeout(t *testing.T) {
	past := func(ctx context.Context, _ bridge.Request[string]) ([]item, error) {
		<-ctx.Done()
		return nil, errFetch
	}
	var retries []error
	o := &options{Past: past, Snapshot: refuse, Policy: oneSecond, Timeout: time.Second}
	o.OnRetry = func(_ string, err error, _ time.Duration) { retries = append(retries, err) }
	withStore(t, &store{}, o, func(s *scene) {
		s.live("a", 7)
		time.Sleep(time.Second)
		s.want("a: stale 6-6")
		require.Equal(t, []error{errFetch}, retries)
	})
}

func TestSnapshotWithoutNumberFixesNumberedStream(t *testing.T) {
	p := &store{}
	withStore(t, p, &options{Snapshot: p.snapshot}, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1})
		s.want("a: stale 6-", "a: snapshot 0", "a: healed 0")
	})
}

func TestPageWithItemWithoutNumberIsError(t *testing.T) {
	var retries []error
	past := func(context.Context, bridge.Request[string]) ([]item, error) { return []item{{Last: 6}, {}}, nil }
	o := &options{Past: past, Snapshot: refuse, Policy: oneSecond}
	o.OnRetry = func(_ string, err error, _ time.Duration) { retries = append(retries, err) }
	withStore(t, &store{}, o, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1})
		s.want("a: stale 6-")
		require.Len(t, retries, 1)
		require.ErrorContains(t, retries[0], "has no number")
	})
}

// The seam came during the call, so that another one follows.
func TestFailuresBeforeSnapshotDoNotCountAfterIt(t *testing.T) {
	var waits []time.Duration
	p := &store{last: 6, takes: time.Second, errs: []error{errFetch, errFetch, nil, errFetch}}
	policy := &backoff.Exponential{Base: time.Minute, Cap: time.Hour, Jitter: backoff.JitterNone}
	o := &options{Snapshot: p.snapshot, Policy: policy}
	o.OnRetry = func(_ string, _ error, wait time.Duration) { waits = append(waits, wait) }
	withStore(t, p, o, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1})
		time.Sleep(3*time.Minute + 2500*time.Millisecond)
		s.seam(reconnect.Seam{Lost: 1})
		time.Sleep(time.Hour)
		s.want("a: stale 6-", "a: snapshot 6", "a: snapshot 6", "a: healed 6")
		require.Equal(t, []time.Duration{time.Minute, 2 * time.Minute, time.Minute}, waits)
	})
}
