package bridge_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/bridge"
)

func TestANewEpochWithoutASnapshotIsFetchedFromItsBeginning(t *testing.T) {
	p := &store{epoch: "y", last: 2}
	withStore(t, p, &options{}, func(s *scene) {
		s.send(item{Key: "a", Epoch: "y", Last: 3})
		s.want("a: stale 1-@y", "a: lost 6-", "a: past 1@y", "a: past 2@y", "a: live 3@y", "a: healed 3@y")
	})
}

// The rest of the last epoch is lost, too, if there is no snapshot to replace it.
func TestANewEpochWhoseSnapshotIsRefusedForGoodLosesTheLast(t *testing.T) {
	withStore(t, &store{}, &options{Snapshot: refuse}, func(s *scene) {
		s.live("a", 6)
		s.send(item{Key: "a", Epoch: "y", Last: 3})
		s.want("a: live 6", "a: stale 7-", "a: lost 7-", "a: lost 1-2@y", "a: live 3@y", "a: healed 3@y")
		require.ErrorIs(t, s.lost[0], bridge.ErrNewEpoch)
		require.ErrorIs(t, s.lost[0], errFetch)
		require.NotErrorIs(t, s.lost[1], bridge.ErrNewEpoch)
		require.ErrorIs(t, s.lost[1], errFetch)
	})
}

// What Past has is not lost.
func TestANewEpochWhoseSnapshotIsRefusedForGoodIsFetchedFromItsBeginning(t *testing.T) {
	p := &store{epoch: "y", last: 2}
	withStore(t, p, &options{Snapshot: refuse, Past: p.past}, func(s *scene) {
		s.live("a", 6)
		s.send(item{Key: "a", Epoch: "y", Last: 3})
		s.want("a: live 6", "a: stale 7-", "a: lost 7-", "a: past 1@y", "a: past 2@y", "a: live 3@y", "a: healed 3@y")
		s.send(item{Key: "a", Epoch: "y", Last: 4})
		s.want("a: live 4@y")
	})
}

func TestNewEpochFromItsFirstNumberLosesOnlyLast(t *testing.T) {
	snapshot := func(ctx context.Context, key string) (item, error) {
		time.Sleep(time.Second)
		return refuse(ctx, key)
	}
	withStore(t, &store{}, &options{Snapshot: snapshot}, func(s *scene) {
		s.send(item{Key: "a", Epoch: "y", Last: 1})
		s.send(item{Key: "a", Epoch: "y", Last: 1})
		require.Equal(t, 1, s.b.Stats().Held)
		time.Sleep(time.Second)
		s.want("a: stale 6-", "a: lost 6-", "a: live 1@y", "a: healed 1@y")
	})
}

// The stream was in the epoch "", and has got nothing of y.
func TestSecondNewEpochBeforeSnapshotLosesRestOfFirst(t *testing.T) {
	snapshot := func(ctx context.Context, key string) (item, error) {
		time.Sleep(time.Second)
		return refuse(ctx, key)
	}
	withStore(t, &store{}, &options{Snapshot: snapshot}, func(s *scene) {
		s.send(item{Key: "a", Epoch: "y", Last: 1})
		s.send(item{Key: "a", Epoch: "z", Last: 3})
		time.Sleep(time.Second)
		s.want("a: stale 6-", "a: lost 6-", "a: lost 1-2@z", "a: live 3@z", "a: healed 3@z")
	})
}

// The same if a page shows the new epoch.
func TestAPageOfANewEpochWhoseSnapshotIsRefusedForGoodIsFetchedOnceMore(t *testing.T) {
	past := func(_ context.Context, r bridge.Request[string]) (page []item, err error) {
		for n := uint64(1); n <= 2; n++ {
			if r.After.Epoch != "y" || n > r.After.Offset {
				page = append(page, item{Epoch: "y", Last: n})
			}
		}
		return page, nil
	}
	withStore(t, &store{}, &options{Snapshot: refuse, Past: past}, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1})
		s.want("a: stale 6-", "a: lost 6-", "a: past 1@y", "a: past 2@y", "a: healed 2@y")
	})
}

// A server may have one log of all epochs, and begin with the end of the last one if it is asked for number 1 of the next.
func TestAPageThatBeginsInTheLastEpochDoesNotGoBackToIt(t *testing.T) {
	past := func(_ context.Context, r bridge.Request[string]) (page []item, err error) {
		for _, it := range []item{{Epoch: "x", Last: 7}, {Epoch: "y", Last: 1}, {Epoch: "y", Last: 2}} {
			if it.Last > r.After.Offset {
				page = append(page, it)
			}
		}
		return page, nil
	}
	for stale, o := range map[string]*options{"a: stale 1-@y": {Past: past}, "a: stale 7-@x": {Past: past, Snapshot: refuse}} {
		inScene(t, o, func(s *scene) {
			s.send(item{Key: "a", Epoch: "x", Last: 6, Snapshot: true})
			s.send(item{Key: "a", Epoch: "y", Last: 3})
			time.Sleep(time.Minute)
			s.want("a: snapshot 6@x", stale, "a: lost 7-@x", "a: past 1@y", "a: past 2@y", "a: live 3@y", "a: healed 3@y")
		})
	}
}

// The past of the new epoch has Patience of its own, and the failures of the snapshot are not those of Past.
func TestThePastAfterARefusedSnapshotBeginsAnew(t *testing.T) {
	p := &store{epoch: "y"}
	start, failures := time.Time{}, 0
	snapshot := func(ctx context.Context, key string) (item, error) {
		if time.Since(start) < 9*time.Second { // it is older than the stream
			return item{Last: 6}, nil
		}
		return refuse(ctx, key)
	}
	o := &options{Snapshot: snapshot, Past: p.past, Policy: policyFunc(func(h backoff.History) (backoff.Step, bool) {
		failures = max(failures, h.N)
		return backoff.Step{Wait: time.Second}, true
	})}
	withStore(t, p, o, func(s *scene) {
		start = time.Now()
		s.live("a", 6)
		s.send(item{Key: "a", Epoch: "y", Last: 3})
		time.Sleep(12 * time.Second)
		s.set(func() { p.last = 2 }) // 3 s after the first call of Past
		time.Sleep(time.Minute)
		s.want("a: live 6", "a: stale 7-", "a: lost 7-", "a: past 1@y", "a: past 2@y", "a: live 3@y", "a: healed 3@y")
		require.Less(t, failures, 12)
	})
}

// A stream may begin with an epoch that ends before its snapshot has come.
func TestAnEpochThatEndsWhileItsSnapshotIsAwaitedIsLost(t *testing.T) {
	snapshot := func(ctx context.Context, key string) (item, error) {
		time.Sleep(time.Second)
		return refuse(ctx, key)
	}
	withStore(t, &store{}, &options{Snapshot: snapshot}, func(s *scene) {
		s.send(item{Key: "b", Epoch: "y", Last: 1})
		s.send(item{Key: "b", Epoch: "z", Last: 3})
		time.Sleep(time.Second)
		s.want("b: stale 1-", "b: lost 1-@y", "b: lost 1-2@z", "b: live 3@z", "b: healed 3@z")
	})
}

// The server does not go back to the cursor, has no snapshot, and says that nothing is missing.
func TestAStreamWithoutHopeIsHealedByTheNextNumber(t *testing.T) {
	p := &store{from: 9}
	withStore(t, p, &options{Snapshot: refuse, Past: p.past}, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1})
		s.want("a: stale 6-")
		s.live("a", 6)
		s.want("a: live 6", "a: healed 6")
	})
}

// The same if there was no room for the first numbers of the new epoch, which are smaller than those of the last.
func TestANewEpochThatFindsNoRoomIsReportedAtOnce(t *testing.T) {
	snapshot := func(ctx context.Context, key string) (item, error) {
		if key == "full" {
			<-ctx.Done()
			return item{}, ctx.Err()
		}
		return refuse(ctx, key)
	}
	withStore(t, &store{}, &options{Snapshot: snapshot, Messages: 1, Timeout: time.Hour}, func(s *scene) {
		s.send(item{Key: "full", Last: 1})
		s.live("a", 6)
		s.want("full: stale 1-", "a: live 6")
		s.send(item{Key: "a", Epoch: "y", Last: 3})
		s.want("a: stale 7-", "a: lost 7-", "a: lost 1-3@y", "a: healed 3@y")
		s.send(item{Key: "a", Epoch: "z", Last: 1})
		s.want("a: stale 4-@y", "a: lost 4-@y", "a: lost 1-1@z", "a: healed 1@z")
	})
}

// A zero Cursor takes the epoch of the first number, also if the numbers before that are lost.
func TestALossFromTheBeginningIsOneLoss(t *testing.T) {
	p := &store{epoch: "y", from: 5, last: 7}
	withStore(t, p, &options{}, func(s *scene) {
		require.NoError(t, s.b.Follow("b", bridge.Cursor{}))
		s.send(item{Key: "b", Epoch: "y", Last: 8})
		s.send(item{Key: "b", Epoch: "y", Last: 9})
		s.want("b: stale 1-", "b: lost 1-7@y", "b: live 8@y", "b: healed 8@y", "b: live 9@y")
	})
}

// What is held when a zero Cursor takes its epoch may be of another one, which the server has left since.
func TestWhatIsHeldOfTheLastEpochDoesNotCountInTheNext(t *testing.T) {
	p := &store{epoch: "y", last: 2, takes: time.Second}
	withStore(t, p, &options{}, func(s *scene) {
		require.NoError(t, s.b.Follow("b", bridge.Cursor{}))
		s.send(item{Key: "b", Epoch: "x", Last: 22})
		time.Sleep(time.Minute)
		s.send(item{Key: "b", Epoch: "y", Last: 3})
		s.want("b: stale 1-", "b: past 1@y", "b: past 2@y", "b: healed 2@y", "b: live 3@y")
	})
}

// A server may count anew before a zero Cursor has taken an epoch. The numbers of the last count are not missing
// in the next one.
func TestANewEpochBeforeTheFirstNumberEndsTheLast(t *testing.T) {
	p := &store{epoch: "y", last: 2, takes: time.Second}
	withStore(t, p, &options{}, func(s *scene) {
		require.NoError(t, s.b.Follow("b", bridge.Cursor{}))
		s.send(item{Key: "b", Epoch: "x", Last: 22})
		s.send(item{Key: "b", Epoch: "y", Last: 3})
		time.Sleep(time.Minute)
		s.want("b: stale 1-", "b: past 1@y", "b: past 2@y", "b: live 3@y", "b: healed 3@y")
	})
}

// The fetch begins in the last epoch, and ends in the next.
func TestALatePastBeforeTheFirstNumberIsDropped(t *testing.T) {
	epochs := []string{"x", "y"}
	past := func(_ context.Context, _ bridge.Request[string]) ([]item, error) {
		epoch := epochs[0]
		epochs = epochs[1:]
		time.Sleep(time.Second)
		return []item{{Epoch: epoch, Last: 1}, {Epoch: epoch, Last: 2}}, nil
	}
	inScene(t, &options{Past: past}, func(s *scene) {
		require.NoError(t, s.b.Follow("b", bridge.Cursor{}))
		s.send(item{Key: "b", Epoch: "x", Last: 22})
		s.send(item{Key: "b", Epoch: "y", Last: 3})
		time.Sleep(time.Minute)
		s.want("b: stale 1-", "b: past 1@y", "b: past 2@y", "b: live 3@y", "b: healed 3@y")
	})
}

func TestALateMessageBeforeTheFirstNumberIsDropped(t *testing.T) {
	p := &store{epoch: "y", last: 2, takes: time.Second}
	withStore(t, p, &options{}, func(s *scene) {
		require.NoError(t, s.b.Follow("b", bridge.Cursor{}))
		s.source.session = 2
		s.send(item{Key: "b", Epoch: "x", Last: 22})
		s.source.session = 3
		s.send(item{Key: "b", Epoch: "y", Last: 3})
		s.source.session = 2
		s.send(item{Key: "b", Epoch: "x", Last: 23})
		time.Sleep(time.Minute)
		s.want("b: stale 1-", "b: past 1@y", "b: past 2@y", "b: live 3@y", "b: healed 3@y")
	})
}

// While one session replaces another, messages of the old one may come late.
func TestALateMessageOfTheLastEpochIsDropped(t *testing.T) {
	withStore(t, &store{epoch: "y"}, &options{}, func(s *scene) {
		s.source.session = 2
		s.send(item{Key: "a", Epoch: "y", Last: 1})
		s.want("a: stale 1-@y", "a: lost 6-", "a: live 1@y", "a: healed 1@y")
		s.source.session = 1
		s.live("a", 6)
		s.seam(reconnect.Seam{Dropped: 1})
		s.want("a: stale 2-@y", "a: healed 1@y")
		s.source.session = 1
		s.live("a", 6)
		s.source.session = 2
		s.send(item{Key: "a", Epoch: "y", Last: 2})
		s.want("a: live 2@y")
	})
}

func TestALateSnapshotOfTheLastEpochIsDropped(t *testing.T) {
	withStore(t, &store{epoch: "y"}, &options{}, func(s *scene) {
		s.source.session = 2
		s.send(item{Key: "a", Epoch: "y", Last: 1})
		s.source.session = 1
		s.send(item{Key: "a", Last: 6, Snapshot: true})
		s.send(item{Key: "a", Last: 1, Snapshot: true})
		s.source.session = 2
		s.send(item{Key: "a", Epoch: "y", Last: 2})
		s.want("a: stale 1-@y", "a: lost 6-", "a: live 1@y", "a: healed 1@y", "a: live 2@y")
	})
}

// The fetch returns what the server had when the fetch began, in epoch x. Meanwhile a number of epoch y has come, with or without a seam
// before it.
func TestAFetchOfTheLastEpochHealsNothing(t *testing.T) {
	for _, lost := range []bool{false, true} {
		snapshots := []item{{Epoch: "x", Last: 4}, {Epoch: "y", Last: 3}}
		snapshot := func(context.Context, string) (item, error) {
			it := snapshots[0]
			snapshots = snapshots[1:]
			time.Sleep(time.Second)
			return it, nil
		}
		inScene(t, &options{Snapshot: snapshot}, func(s *scene) {
			if lost {
				s.send(item{Key: "a", Epoch: "x", Last: 3})
				s.seam(reconnect.Seam{Lost: 1})
			} else {
				require.NoError(t, s.b.Follow("a", bridge.Cursor{}))
			}
			s.send(item{Key: "a", Epoch: "y", Last: 2})
			time.Sleep(1500 * time.Millisecond)
			if lost { // a stream that has been in epoch x does not go back to it
				s.want("a: stale 1-")
			} else {
				s.want("a: stale 1-", "a: snapshot 4@x")
			}
			time.Sleep(time.Minute)
			s.want("a: snapshot 3@y", "a: healed 3@y")
		})
	}
}

// The same without snapshots.
func TestAPastOfTheLastEpochHealsNothing(t *testing.T) {
	epochs := []string{"x", "y"}
	past := func(_ context.Context, r bridge.Request[string]) ([]item, error) {
		epoch := epochs[0]
		if len(epochs) > 1 {
			epochs = epochs[1:]
		}
		time.Sleep(time.Second)
		if r.After.Epoch == epoch && r.After.Offset > 0 {
			return nil, nil
		}
		return []item{{Epoch: epoch, Last: 1}, {Epoch: epoch, Last: 2}, {Epoch: epoch, Last: 3}}, nil
	}
	inScene(t, &options{Past: past}, func(s *scene) {
		require.NoError(t, s.b.Follow("a", bridge.Cursor{}))
		s.send(item{Key: "a", Epoch: "y", Last: 2})
		time.Sleep(1500 * time.Millisecond)
		s.want("a: stale 1-", "a: past 1@x", "a: past 2@x", "a: past 3@x")
		time.Sleep(2 * time.Second)
		s.want("a: lost 4-@x", "a: past 1@y", "a: past 2@y", "a: past 3@y", "a: healed 3@y")
	})
}

// How long the past of the last epoch has lacked something says nothing of the new one.
func TestEachEpochHasPatienceOfItsOwn(t *testing.T) {
	p := &store{last: 6}
	withStore(t, p, &options{Policy: oneSecond, Patience: 2500 * time.Millisecond}, func(s *scene) {
		s.live("a", 9) // the past lacks 7 and 8
		s.want("a: stale 6-8", "a: past 6")
		time.Sleep(1500 * time.Millisecond)
		s.set(func() { p.epoch, p.last = "y", 0 })
		s.send(item{Key: "a", Epoch: "y", Last: 2}) // the past lacks 1 from the next fetch on, after 2 s
		s.want("a: lost 7-")
		time.Sleep(2 * time.Second)
		s.want()
		s.set(func() { p.last = 1 })
		time.Sleep(time.Second)
		s.want("a: past 1@y", "a: live 2@y", "a: healed 2@y")
	})
}

// A cache may have it. But if it stays, the server has begun to count anew.
func TestAnOldSnapshotIsBelievedInTheEnd(t *testing.T) {
	p := &store{last: 1}
	withStore(t, p, &options{Snapshot: p.snapshot, Policy: oneSecond}, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1})
		time.Sleep(10*time.Second - 1)
		s.want("a: stale 6-")
		time.Sleep(time.Nanosecond)
		s.want("a: snapshot 1", "a: healed 1")
	})
}

// The server has lost its state, counts from 1, and has no epoch. Its numbers reach those from
// before while the old snapshot is in doubt.
func TestNumbersThatReachTheCursorAgainProveNothingAfterAnOldSnapshot(t *testing.T) {
	p := &store{last: 2}
	o := &options{}
	o.Snapshot = p.snapshot
	inScene(t, o, func(s *scene) {
		p.s = s
		s.send(item{Key: "a", Last: 5, Snapshot: true})
		s.want("a: snapshot 5")
		s.seam(reconnect.Seam{Lost: 1})
		s.want("a: stale 6-")
		s.live("a", 3, 4, 5)
		s.live("a", 6)
		s.set(func() { p.last = 6 })
		s.want("a: live 6")
		time.Sleep(time.Minute)
		s.want("a: snapshot 6", "a: healed 6")
	})
}

// The sessions of another source are not older than those of the last one, though their numbers are
// lower.
func TestAnotherSourceMayGoBackToTheLastEpoch(t *testing.T) {
	p := &store{epoch: "y", last: 1}
	withStore(t, p, &options{}, func(s *scene) {
		s.source.session = 5
		s.send(item{Key: "a", Epoch: "y", Last: 1})
		s.want("a: stale 1-@y", "a: lost 6-", "a: live 1@y", "a: healed 1@y")
		s.stop()
		<-s.ended
		s.source = &scriptedSource{next: make(chan any), session: 1, state: reconnect.StateReady}
		s.read()
		s.want("a: stale 2-@y", "a: healed 1@y")
		s.set(func() { p.epoch, p.last = "", 6 })
		s.live("a", 7)
		s.want("a: stale 1-", "a: lost 2-@y", "a: past 1", "a: past 2", "a: past 3", "a: past 4", "a: past 5", "a: past 6", "a: live 7", "a: healed 7")
	})
}

// The snapshot that is old is believed at the end of Patience, and not at the end of a wait that goes beyond it.
func TestNoWaitForAnotherSnapshotGoesBeyondPatience(t *testing.T) {
	p := &store{last: 3}
	policy := &backoff.Exponential{Base: 8 * time.Second, Factor: 1, Jitter: backoff.JitterNone}
	withStore(t, p, &options{Snapshot: p.snapshot, Policy: policy}, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1})
		time.Sleep(10*time.Second - 1)
		s.want("a: stale 6-")
		time.Sleep(time.Nanosecond)
		s.want("a: snapshot 3", "a: healed 3")
	})
}

// A live snapshot may be what shows that there is another epoch.
func TestALateMessageAfterASnapshotOfTheNextEpochIsDropped(t *testing.T) {
	withStore(t, &store{}, &options{}, func(s *scene) {
		s.source.session = 2
		s.send(item{Key: "a", Epoch: "y", Last: 3, Snapshot: true})
		s.source.session = 1
		s.live("a", 6)
		s.source.session = 2
		s.send(item{Key: "a", Epoch: "y", Last: 4})
		s.want("a: snapshot 3@y", "a: live 4@y")
	})
}

// Inside a session no message is late: the server has gone back to the epoch before.
func TestAServerMayGoBackToTheLastEpochInASession(t *testing.T) {
	p := &store{epoch: "y"}
	withStore(t, p, &options{}, func(s *scene) {
		s.send(item{Key: "a", Epoch: "y", Last: 1})
		s.want("a: stale 1-@y", "a: lost 6-", "a: live 1@y", "a: healed 1@y")
		s.set(func() { p.epoch = "" })
		s.live("a", 1)
		s.want("a: stale 1-", "a: lost 2-@y", "a: live 1", "a: healed 1")
	})
}

// Neither snapshot changes which epoch was the last one.
func TestLateMessageAfterSnapshotOfSameEpochIsDropped(t *testing.T) {
	p := &store{epoch: "y", last: 3}
	for name, o := range map[string]*options{"live": {}, "fetched": {Snapshot: p.snapshot}} {
		t.Run(name, func(t *testing.T) {
			withStore(t, p, o, func(s *scene) {
				s.source.session = 2
				s.send(item{Key: "a", Epoch: "y", Last: 3})
				if name == "live" {
					s.send(item{Key: "a", Epoch: "y", Last: 3, Snapshot: true})
				}
				s.got = nil
				s.source.session = 1
				s.live("a", 6)
				s.source.session = 2
				s.send(item{Key: "a", Epoch: "y", Last: 4})
				s.want("a: live 4@y")
			})
		})
	}
}

// Its Epoch says nothing, because an item without a number needs none.
func TestLateSnapshotWithoutNumberIsTaken(t *testing.T) {
	withStore(t, &store{epoch: "y"}, &options{}, func(s *scene) {
		s.source.session = 2
		s.send(item{Key: "a", Epoch: "y", Last: 1})
		s.want("a: stale 1-@y", "a: lost 6-", "a: live 1@y", "a: healed 1@y")
		s.source.session = 1
		s.send(item{Key: "a", Snapshot: true})
		s.want("a: snapshot 0")
	})
}

// The stream has taken a number or a snapshot since, so that the server has gone back to the last epoch.
func TestPageMayGoBackToLastEpoch(t *testing.T) {
	past := func(_ context.Context, r bridge.Request[string]) (page []item, err error) {
		if r.After.Epoch == "x" {
			page = []item{{Last: 1}}
		}
		return page, nil
	}
	for _, snapshot := range []bool{true, false} {
		inScene(t, &options{Past: past}, func(s *scene) {
			s.send(item{Key: "a", Epoch: "x", Last: 6, Snapshot: snapshot})
			s.got = nil
			s.seam(reconnect.Seam{Lost: 1})
			s.want("a: stale 7-@x", "a: lost 7-@x", "a: past 1", "a: healed 1")
		})
	}
}

// The server begins a new count without an epoch, so that a held number of the last count is not missing any more.
func TestHeldNumbersAreDroppedWhenOldSnapshotIsTaken(t *testing.T) {
	p := &store{last: 3, takes: time.Second}
	withStore(t, p, &options{Snapshot: p.snapshot, Policy: oneSecond, Patience: -1}, func(s *scene) {
		s.live("a", 9)
		s.want("a: stale 6-8")
		time.Sleep(time.Second)
		s.want("a: snapshot 3", "a: healed 3")
		require.Zero(t, s.b.Stats().Held)
		s.live("a", 4)
		s.want("a: live 4")
	})
}

// A page has come, so that the failures before it do not count for the snapshot.
func TestSnapshotOfEpochInPageHasWaitsOfItsOwn(t *testing.T) {
	var waits []time.Duration
	p := &store{epoch: "y", last: 3, errs: []error{errFetch, errFetch, nil, errFetch}}
	past := func(ctx context.Context, r bridge.Request[string]) ([]item, error) {
		return p.past(ctx, bridge.Request[string]{Key: r.Key})
	}
	policy := &backoff.Exponential{Base: time.Minute, Cap: time.Hour, Jitter: backoff.JitterNone}
	o := &options{Past: past, Snapshot: p.snapshot, Policy: policy}
	o.OnRetry = func(_ string, _ error, wait time.Duration) { waits = append(waits, wait) }
	withStore(t, p, o, func(s *scene) {
		s.seam(reconnect.Seam{Lost: 1})
		time.Sleep(time.Hour)
		s.want("a: stale 6-", "a: snapshot 3@y", "a: healed 3@y")
		require.Equal(t, []time.Duration{time.Minute, 2 * time.Minute, time.Minute}, waits)
	})
}

func TestNewEpochDropsHeldNumbersOfLast(t *testing.T) {
	p := &store{last: 2, takes: time.Second}
	withStore(t, p, &options{}, func(s *scene) {
		s.send(item{Key: "a", Epoch: "x", Last: 5, Snapshot: true})
		s.send(item{Key: "a", Epoch: "x", Last: 7})
		s.live("a", 3)
		require.Equal(t, 1, s.b.Stats().Held)
		time.Sleep(time.Second)
		s.want("a: snapshot 5@x", "a: stale 6-6@x", "a: lost 6-@x",
			"a: past 1", "a: past 2", "a: live 3", "a: healed 3")
	})
}
