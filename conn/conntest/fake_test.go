package conntest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
)

var errBoom = errors.New("boom")

func text(s string) conn.Message { return conn.Message{Type: conn.Text, Data: []byte(s)} }

func TestFakeReadsWhatIsDeliveredAtThatInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := conntest.NewFake(nil)
		start := time.Now()
		time.AfterFunc(time.Minute, func() { f.Deliver(text("a"), text("bcd")) })
		buf := make([]byte, 2, 16)
		m, err := f.Read(buf)
		require.NoError(t, err)
		require.Equal(t, text("a"), m)
		require.Same(t, &buf[0], &m.Data[0], "appended to buf[:0]")
		require.Equal(t, time.Minute, time.Since(start))
		m, err = f.Read(nil)
		require.NoError(t, err)
		require.Equal(t, text("bcd"), m)
	})
}

func TestFakeNotesACopyOfWhatIsWritten(t *testing.T) {
	f := conntest.NewFake(nil)
	m := text("a")
	require.NoError(t, f.Write(m))
	m.Data[0] = 'x'
	require.NoError(t, f.Write(m))
	require.Equal(t, []conn.Message{text("a"), text("x")}, f.Written())
}

func TestFakeDeliversACopy(t *testing.T) {
	f := conntest.NewFake(nil)
	m := text("a")
	f.Deliver(m)
	m.Data[0] = 'x'
	got, err := f.Read(nil)
	require.NoError(t, err)
	require.Equal(t, text("a"), got)
}

func TestFailedFakeDeliversAndThenTellsItsCause(t *testing.T) {
	f := conntest.NewFake(nil)
	f.Deliver(text("a"))
	f.Fail(errBoom)
	f.Fail(io.EOF)          // the first cause is kept
	f.Deliver(text("late")) // lost
	m, err := f.Read(nil)
	require.NoError(t, err)
	require.Equal(t, text("a"), m)
	for range 2 {
		_, err = f.Read(nil)
		require.ErrorIs(t, err, errBoom)
	}
	err = f.Write(text("b"))
	require.ErrorIs(t, err, errBoom)
	require.ErrorIs(t, err, conn.ErrNotWritten)
	require.Empty(t, f.Written())
	require.False(t, f.Closed())
}

func TestFakeClosedNowUnblocksEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := conntest.NewFake(&conntest.FakeOptions{Pings: true})
		f.Hold()
		f.Mute()
		errs := make(chan error, 4) // one for each call
		go func() { _, err := f.Read(nil); errs <- err }()
		go func() { errs <- f.Write(text("a")) }()
		go func() { errs <- f.Conn().(conn.Pinger).Ping(t.Context()) }()
		go func() { errs <- f.Close(t.Context(), 1000, "") }()
		synctest.Wait()
		require.Empty(t, errs)
		require.NoError(t, f.CloseNow())
		require.NoError(t, f.CloseNow())
		for range 4 {
			err := <-errs
			require.ErrorIs(t, err, net.ErrClosed)
			require.NotErrorIs(t, err, conn.ErrNotWritten, "the fate of a cut write is unknown")
		}
		require.True(t, f.Closed())
		require.ErrorIs(t, f.Write(text("b")), conn.ErrNotWritten)
	})
}

func TestClosedFakeReadsNothingMore(t *testing.T) {
	f := conntest.NewFake(nil)
	f.Deliver(text("a"))
	f.CloseNow()
	_, err := f.Read(nil)
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestHeldWritesWaitForTheRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := conntest.NewFake(nil)
		f.Hold()
		start := time.Now()
		time.AfterFunc(time.Second, f.Release)
		require.NoError(t, f.Write(text("a")))
		require.Equal(t, time.Second, time.Since(start))
	})
}

func TestFailWriteEndsTheConnectionInTheNextWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := conntest.NewFake(nil)
		f.Hold()
		held := make(chan error, 1)
		go func() { held <- f.Write(text("a")) }()
		synctest.Wait()
		f.FailWrite(errBoom)
		err := <-held
		require.ErrorIs(t, err, errBoom)
		require.NotErrorIs(t, err, conn.ErrNotWritten)
		_, err = f.Read(nil)
		require.ErrorIs(t, err, errBoom)
		require.Empty(t, f.Written())
	})
}

func TestFakeCloseNotesItsCodeAndWaitsOnlyForAMutePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := conntest.NewFake(nil)
		_, _, ok := f.ClosedWith()
		require.False(t, ok)
		require.NoError(t, f.Close(t.Context(), 1001, "bye"))
		code, reason, ok := f.ClosedWith()
		require.True(t, ok && code == 1001 && reason == "bye")
		require.ErrorIs(t, f.Close(t.Context(), 1000, ""), net.ErrClosed)

		mute := conntest.NewFake(nil)
		mute.Mute()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, mute.Close(ctx, 1000, ""), context.DeadlineExceeded)
		require.Equal(t, 5*time.Second, time.Since(start))
		require.True(t, mute.Closed())
	})
}

func TestFakeHasTheAbilitiesOfItsOptions(t *testing.T) {
	for _, o := range []conntest.FakeOptions{{}, {Pings: true}, {Transport: true}, {Pings: true, Transport: true}} {
		f := conntest.NewFake(&o)
		for _, c := range []conn.Conn{f.Conn(), conntest.Poison(f.Conn())} {
			_, pings := c.(conn.Pinger)
			_, transport := c.(conn.Transport)
			require.Equal(t, o, conntest.FakeOptions{Pings: pings, Transport: transport})
			require.NoError(t, c.Write(text("the same connection")))
		}
		require.Len(t, f.Written(), 2)
	}
}

func TestPingIsAnsweredOnlyWhileARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := conntest.NewFake(&conntest.FakeOptions{Pings: true})
		defer f.CloseNow()
		f.PongAfter(2 * time.Second)
		start := time.Now()
		time.AfterFunc(time.Minute, func() { f.Read(nil) })
		require.NoError(t, f.Conn().(conn.Pinger).Ping(t.Context()))
		require.Equal(t, time.Minute, time.Since(start))
		require.NoError(t, f.Conn().(conn.Pinger).Ping(t.Context()))
		require.Equal(t, time.Minute+2*time.Second, time.Since(start))
		require.Equal(t, 2, f.Pings())
	})
}

func TestPingIsNotAnsweredAfterTheLastRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := conntest.NewFake(&conntest.FakeOptions{Pings: true})
		f.Deliver(text("a"))
		_, err := f.Read(nil)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.ErrorIs(t, f.Conn().(conn.Pinger).Ping(ctx), context.DeadlineExceeded)
	})
}

func TestMutePeerCostsThePingAndNotTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := conntest.NewFake(&conntest.FakeOptions{Pings: true})
		defer f.CloseNow()
		go f.Read(nil)
		f.Mute()
		ping := f.Conn().(conn.Pinger).Ping
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, ping(ctx), context.DeadlineExceeded)
		require.NoError(t, f.Write(text("alive")))
	})
}

func TestSilenceCountsFromTheLastLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := conntest.NewFake(&conntest.FakeOptions{Transport: true, Pings: true})
		defer f.CloseNow()
		silence := f.Conn().(conn.Transport).Silence
		time.Sleep(3 * time.Second)
		require.Equal(t, 3*time.Second, silence())
		f.Deliver(text("a"))
		require.Equal(t, 3*time.Second, silence(), "nobody has read it")
		f.Read(nil)
		require.Zero(t, silence())
		time.Sleep(time.Second)
		f.Hear()
		require.Zero(t, silence())
		time.Sleep(time.Second)
		go f.Read(nil)
		require.NoError(t, f.Conn().(conn.Pinger).Ping(t.Context()))
		require.Zero(t, silence())
	})
}

func TestPairReadsWhatTheOtherWrites(t *testing.T) {
	a, b := conntest.Pair(nil)
	require.NoError(t, a.Write(text("1")))
	require.NoError(t, a.Write(text("2")))
	require.NoError(t, b.Write(text("3")))
	for _, want := range []string{"1", "2"} {
		m, err := b.Read(nil)
		require.NoError(t, err)
		require.Equal(t, text(want), m)
	}
	m, err := a.Read(nil)
	require.NoError(t, err)
	require.Equal(t, text("3"), m)
}

func TestPairDiesTogether(t *testing.T) {
	a, b := conntest.Pair(nil)
	require.NoError(t, a.Write(text("last")))
	require.NoError(t, a.Close(t.Context(), 1012, "restart"))
	_, err := b.Read(nil)
	require.NoError(t, err)
	_, err = b.Read(nil)
	var closed interface{ CloseCode() int }
	require.ErrorAs(t, err, &closed)
	require.Equal(t, 1012, closed.CloseCode())
	require.EqualError(t, err, `read: closed by the peer: 1012 "restart"`)

	a, b = conntest.Pair(nil)
	a.CloseNow()
	_, err = b.Read(nil)
	require.ErrorIs(t, err, io.EOF)
}

func TestFakeWritesABatchOfCopies(t *testing.T) {
	f := conntest.NewFake(&conntest.FakeOptions{Transport: true})
	ms := []conn.Message{text("a"), text("b")}
	n, err := f.Conn().(conn.Transport).WriteBatch(ms)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	ms[0].Data[0] = 'x'
	require.Equal(t, []conn.Message{text("a"), text("b")}, f.Written())
	require.Equal(t, []int{2}, f.Batches())
}

func TestFailWriteAfterEndsABatchInTheMiddle(t *testing.T) {
	f := conntest.NewFake(&conntest.FakeOptions{Transport: true})
	f.FailWriteAfter(2, errBoom)
	n, err := f.Conn().(conn.Transport).WriteBatch([]conn.Message{text("a"), text("b"), text("c")})
	require.Equal(t, 2, n)
	require.ErrorIs(t, err, errBoom)
	require.NotErrorIs(t, err, conn.ErrNotWritten)
	require.Len(t, f.Written(), 2)
	require.ErrorIs(t, f.Write(text("d")), conn.ErrNotWritten)
}

func TestHungUpIsSeenBeforeTheEndIsRead(t *testing.T) {
	f := conntest.NewFake(&conntest.FakeOptions{Transport: true})
	hungUp := f.Conn().(conn.Transport).HungUp
	f.Deliver(text("unread"))
	require.False(t, hungUp())
	f.HangUp()
	require.True(t, hungUp())
	require.NoError(t, f.Write(text("still")))
	_, err := f.Read(nil)
	require.NoError(t, err)
	_, err = f.Read(nil)
	require.ErrorIs(t, err, io.EOF)
	require.True(t, hungUp())
	require.NoError(t, f.CloseNow())
	require.False(t, hungUp(), "closed by us")
}

func TestAFakeAsksForABufferAndAnnouncesItsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := conntest.NewFake(&conntest.FakeOptions{Transport: true})
		c := f.Conn().(conn.Transport)
		waits, sizes := 0, []int{}
		require.True(t, c.BeforeBlock(func() { waits++ }))
		read := func() string {
			m, err := c.ReadBuffer(func(size int) []byte { sizes = append(sizes, size); return nil })
			require.NoError(t, err)
			return string(m.Data)
		}
		f.Deliver(text("at hand"))
		require.Equal(t, "at hand", read())
		require.Zero(t, waits)
		time.AfterFunc(time.Second, func() { f.Deliver(text("late")) })
		require.Equal(t, "late", read())
		require.Equal(t, 1, waits)
		require.Equal(t, []int{7, 4}, sizes)
	})
}
