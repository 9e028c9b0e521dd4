package bridge_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/bridge"
)

// These tests are about what a seam means for a stream, and a snapshot after it.

// A mark may be joined with the seam of dropped messages. What was dropped is missing in a stream of any kind.
func TestDroppedMessagesMakeTheStreamsStaleWhateverElseTheirSeamSays(t *testing.T) {
	for name, seam := range map[string]reconnect.Seam{
		"alone":                  {Dropped: 2},
		"a mark":                 {Dropped: 2, Refetch: true},
		"a seam that overlapped": {Dropped: 2, Lost: 1, Overlapped: true},
	} {
		t.Run(name, func(t *testing.T) {
			withStore(t, &store{last: 7}, &options{}, func(s *scene) {
				s.seam(seam)
				s.want("a: stale 6-", "a: past 6", "a: past 7", "a: healed 7")
			})
		})
	}
}

// The past was given up, and nothing has come since. Perhaps another server has it.
func TestAStreamWhosePastWasGivenUpIsFetchedForTheNextReason(t *testing.T) {
	p := &store{from: 9}
	withStore(t, p, &options{}, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1})
		s.want("a: stale 6-")
		s.wantAsked("a after 5")
		s.set(func() { p.from, p.last = 0, 7 })
		s.seam(reconnect.Seam{Lost: 1})
		s.want("a: past 6", "a: past 7", "a: healed 7")
	})
}

// The next session has brought something new, so that a snapshot behind that is not the one of its subscription: the
// server counts anew.
func TestOnlyTheFirstSnapshotOfTheNextSessionIsLeftOut(t *testing.T) {
	p := &store{}
	withStore(t, p, &options{Ask: p.ask}, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1, Planned: true, Overlapped: true})
		s.live("a", 6)
		s.send(item{Key: "a", Last: 1, Snapshot: true})
		s.want("a: live 6", "a: snapshot 1")
	})
}

// The snapshot of the next session is of use if the stream has become stale meanwhile.
func TestASnapshotOfTheNextSessionHealsAStaleStream(t *testing.T) {
	p := &store{}
	withStore(t, p, &options{Ask: p.ask}, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1, Planned: true, Overlapped: true})
		s.b.Refetch("a", 0)
		s.want("a: stale 6-")
		s.send(item{Key: "a", Last: 5, Snapshot: true})
		s.want("a: snapshot 5", "a: healed 5")
	})
}

// A live message has closed the gap while the stream waited for its next fetch.
func TestAGapThatWasClosedLeavesNoWaitToTheNext(t *testing.T) {
	p := &store{last: 5, errs: []error{errFetch, errFetch}}
	var waits []time.Duration
	policy := &backoff.Exponential{Base: time.Minute, Cap: time.Hour, Jitter: backoff.JitterNone}
	o := &options{Policy: policy, OnRetry: func(_ string, _ error, wait time.Duration) { waits = append(waits, wait) }}
	withStore(t, p, o, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1})
		s.live("a", 6)
		s.want("a: stale 6-", "a: live 6", "a: healed 6")
		s.seam(reconnect.Seam{Lost: 1})
		s.want("a: stale 7-")
		require.Equal(t, []time.Duration{time.Minute, time.Minute}, waits)
	})
}

func TestAFetchLearnsWhatIsHeldBehindTheGap(t *testing.T) {
	var before []uint64
	past := func(_ context.Context, r bridge.Request[string]) ([]item, error) {
		before = append(before, r.Before)
		return nil, nil
	}
	inScene(t, &options{Past: past}, func(s *scene) {
		s.live("a", 1, 5)
		s.b.Refetch("b", 0)
		s.want("a: live 1", "a: stale 2-4", "b: stale 1-", "b: healed 0")
		require.Equal(t, []uint64{5, 0}, before)
	})
}

// What comes between a fetch and the subscription would be missing.
func TestAStreamThatIsFollowedWaitsForItsSubscription(t *testing.T) {
	withStore(t, &store{last: 7}, &options{AwaitSubscribed: true}, func(s *scene) {
		require.NoError(t, s.b.Follow("b", bridge.Cursor{Offset: 5}))
		time.Sleep(time.Hour)
		s.wantAsked()
		s.b.Refetch("b", 1)
		s.wantAsked("b after 5", "b after 7")
	})
}

// The past has failed twice, and then it is too old. How often it has failed says nothing of the snapshot.
func TestASnapshotHasWaitsOfItsOwnAfterAPastThatFails(t *testing.T) {
	var waits []time.Duration
	p := &store{last: 9, from: 8, errs: []error{errFetch, errFetch, nil, errFetch}}
	policy := &backoff.Exponential{Base: time.Minute, Cap: time.Hour, Jitter: backoff.JitterNone}
	o := &options{Policy: policy, OnRetry: func(_ string, _ error, wait time.Duration) { waits = append(waits, wait) }}
	o.Past, o.Snapshot = p.past, p.snapshot
	withStore(t, p, o, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1})
		time.Sleep(time.Hour)
		s.want("a: stale 6-", "a: snapshot 9", "a: healed 9")
		require.Equal(t, []time.Duration{time.Minute, 2 * time.Minute, time.Minute}, waits)
	})
}

// The session goes on, and its subscriptions with it.
func TestWhatWasDroppedIsFetchedAtOnceThoughStreamsAwaitTheirSubscription(t *testing.T) {
	withStore(t, &store{last: 7}, &options{AwaitSubscribed: true}, func(s *scene) {
		s.seam(reconnect.Seam{Dropped: 2})
		s.want("a: stale 6-", "a: past 6", "a: past 7", "a: healed 7")
	})
}

// A program may call Refetch without a session as well, after that with one.
func TestARefetchWithoutASessionLeavesTheSubscriptionKnown(t *testing.T) {
	withStore(t, &store{last: 7}, &options{AwaitSubscribed: true}, func(s *scene) {
		s.b.Refetch("a", 2)
		s.want("a: stale 6-", "a: past 6", "a: past 7", "a: healed 7")
		s.b.Refetch("a", 0)
		s.want("a: stale 8-", "a: healed 7")
		s.seam(reconnect.Seam{Lost: 1}) // of session 1
		s.want("a: stale 8-", "a: healed 7")
	})
}

// An old number between new ones is a duplicate, as any protocol may have.
func TestOldNumbersAreReportedOnlyInARow(t *testing.T) {
	for number, event := range map[uint64]string{6: "a: live 6", 7: "a: stale 6-6"} {
		withStore(t, &store{takes: time.Hour}, &options{Timeout: time.Hour}, func(s *scene) {
			for range 999 {
				s.live("a", 2)
			}
			s.live("a", number)
			for range 999 {
				s.live("a", 2)
			}
			s.want(event)
			s.live("a", 2)
			s.want("other: a thousand messages had numbers that had come before")
		})
	}
}

func TestAPastThatIsGoneForGoodIsReplacedByASnapshot(t *testing.T) {
	p := &store{last: 9, errs: []error{backoff.Permanent(errFetch)}}
	o := &options{Past: p.past, Snapshot: p.snapshot}
	o.OnRetry = func(string, error, time.Duration) { t.Error("there is no wait") }
	withStore(t, p, o, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1})
		s.want("a: stale 6-", "a: snapshot 9", "a: healed 9")
		s.wantAsked("a after 5", "a snapshot")
		require.Equal(t, uint64(1), s.b.Stats().Failed)
	})
}

func TestAPastThatIsTooOldCountsAsFailed(t *testing.T) {
	p := &store{from: 8, last: 9}
	withStore(t, p, &options{Past: p.past, Snapshot: p.snapshot}, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1})
		s.want("a: stale 6-", "a: snapshot 9", "a: healed 9")
		stats := s.b.Stats()
		require.Equal(t, []uint64{2, 1}, []uint64{stats.Fetches, stats.Failed})
	})
}

// A server may begin the past with its state at the oldest number that it has.
func TestThePastGoesOnAfterASnapshotInIt(t *testing.T) {
	past := func(_ context.Context, r bridge.Request[string]) ([]item, error) {
		switch r.After.Offset {
		case 5:
			return []item{{Last: 7, Snapshot: true}}, nil
		case 7:
			return []item{{Last: 8}}, nil
		}
		return nil, nil
	}
	inScene(t, &options{Past: past}, func(s *scene) {
		s.live("a", 5)
		s.seam(reconnect.Seam{Lost: 1})
		s.want("a: live 5", "a: stale 6-", "a: snapshot 7", "a: past 8", "a: healed 8")
	})
}

func TestFourFetchesRunAtOnceByDefault(t *testing.T) {
	p := &store{last: 7, takes: time.Second}
	withStore(t, p, &options{}, func(s *scene) {
		for key := range 5 {
			s.live(fmt.Sprint(key), 5)
		}
		s.seam(reconnect.Seam{Lost: 1})
		require.Equal(t, 4, s.calls())
	})
}

// Inside a session a snapshot behind the cursor says that the server begins a new count.
func TestSecondOldSnapshotOfNextSessionIsTaken(t *testing.T) {
	for _, last := range []uint64{1, 5} {
		p := &store{}
		withStore(t, p, &options{Ask: p.ask}, func(s *scene) {
			s.seam(reconnect.Seam{Lost: 1, Planned: true, Overlapped: true})
			s.send(item{Key: "a", Last: last, Snapshot: true})
			s.want()
			for range 2 {
				s.send(item{Key: "a", Last: last, Snapshot: true})
				s.want(fmt.Sprint("a: snapshot ", last))
			}
			s.live("a", last+1)
			s.want(fmt.Sprint("a: live ", last+1))
		})
	}
}

// The same if the first one was not old.
func TestOldSnapshotAfterNewOneOfNextSessionIsTaken(t *testing.T) {
	p := &store{}
	withStore(t, p, &options{Ask: p.ask}, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1, Planned: true, Overlapped: true})
		s.send(item{Key: "a", Last: 8, Snapshot: true})
		s.send(item{Key: "a", Last: 7, Snapshot: true})
		s.want("a: snapshot 8", "a: snapshot 7")
	})
}

// The stream has not waited for the mark.
func TestMarkDoesNotPostponeAsk(t *testing.T) {
	p := &store{}
	withStore(t, p, &options{Ask: p.ask, Timeout: 10 * time.Second}, func(s *scene) {
		s.live("a", 7)
		s.wantAsked("a asked")
		time.Sleep(5 * time.Second)
		s.source.next <- &reconnect.Seam{Session: 1, Refetch: true}
		time.Sleep(5 * time.Second)
		s.wantAsked("a asked")
	})
}

// Nothing is fetched between the seam and the subscription, because the fetch would miss what comes after it.
func TestRetryAfterSeamWaitsForSubscription(t *testing.T) {
	p := &store{last: 5, errs: []error{errFetch}}
	withStore(t, p, &options{AwaitSubscribed: true, Policy: oneSecond}, func(s *scene) {
		s.b.Refetch("a", 1)
		s.wantAsked("a after 5")
		s.seam(reconnect.Seam{Lost: 1})
		time.Sleep(time.Hour)
		s.want("a: stale 6-")
		s.wantAsked()
		s.set(func() { p.last = 6 })
		s.source.next <- &reconnect.Seam{Session: 2, Refetch: true}
		s.want("a: past 6", "a: healed 6")
	})
}

// The same if the fetch was in progress at the seam, and shows that there is a new epoch.
func TestNewEpochInPageWaitsForSubscription(t *testing.T) {
	calls := 0
	past := func(_ context.Context, r bridge.Request[string]) ([]item, error) {
		calls++
		time.Sleep(time.Second)
		if r.After.Epoch == "y" && r.After.Offset > 0 {
			return nil, nil
		}
		return []item{{Epoch: "y", Last: 1}}, nil
	}
	inScene(t, &options{AwaitSubscribed: true, Past: past}, func(s *scene) {
		s.send(item{Key: "a", Last: 5, Snapshot: true})
		s.b.Refetch("a", 1)
		s.want("a: snapshot 5", "a: stale 6-")
		s.seam(reconnect.Seam{Lost: 1})
		time.Sleep(time.Hour)
		s.want("a: lost 6-", "a: past 1@y")
		require.Equal(t, 1, calls)
		s.b.Refetch("a", 2)
		time.Sleep(time.Second)
		s.want("a: healed 1@y")
	})
}

// Nothing says that it is behind what the last session has brought.
func TestSnapshotWithoutNumberOfNextSessionIsTaken(t *testing.T) {
	p := &store{}
	withStore(t, p, &options{Ask: p.ask}, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1, Planned: true, Overlapped: true})
		s.send(item{Key: "a", Snapshot: true})
		s.want("a: snapshot 0")
	})
}

// A session of another source is not subscribed because one with a higher number was. What is given to Refetch
// between the two loops counts.
func TestRefetchCountsForItsSource(t *testing.T) {
	for _, early := range []bool{false, true} {
		withStore(t, &store{last: 5}, &options{AwaitSubscribed: true}, func(s *scene) {
			s.b.Refetch("a", 50)
			s.want("a: stale 6-", "a: healed 5")
			s.stop()
			<-s.ended
			if early {
				s.b.Refetch("a", 2)
			}
			s.source = &scriptedSource{next: make(chan any), session: 1, state: reconnect.StateReady}
			s.read()
			s.want("a: stale 6-", "a: healed 5")
			s.set(func() { s.asked = nil })
			s.seam(reconnect.Seam{Lost: 1})
			if !early {
				s.wantAsked()
				s.b.Refetch("a", 2)
			}
			s.wantAsked("a after 5")
		})
	}
}

// Another loop over the same source knows what was given to Refetch.
func TestRefetchCountsForNextLoop(t *testing.T) {
	withStore(t, &store{last: 5}, &options{AwaitSubscribed: true}, func(s *scene) {
		s.b.Refetch("a", 2)
		s.want("a: stale 6-", "a: healed 5")
		s.stop()
		<-s.ended
		s.read()
		s.seam(reconnect.Seam{Lost: 1})
		s.want("a: stale 6-", "a: healed 5")
	})
}

// A stream that Refetch begins needs a snapshot, and a place.
func TestRefetchBeginsStream(t *testing.T) {
	p := &store{last: 5}
	withStore(t, p, &options{Past: p.past, Snapshot: p.snapshot, Streams: 2}, func(s *scene) {
		s.b.Refetch("b", 0)
		s.b.Refetch("c", 0)
		s.wantAsked("b snapshot")
		require.Equal(t, 2, s.b.Stats().Streams)
	})
}
