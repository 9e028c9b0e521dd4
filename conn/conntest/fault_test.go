package conntest_test

import (
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
)

func TestResetKeepsWhatHasArrivedAndLosesWhatHasNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, server, p := connect(t, &n)
		write(t, server, "arrived")
		p.Latency(conntest.ToClient, time.Second)
		write(t, server, "under way")
		p.Reset()
		read(t, client, "arrived")
		require.ErrorIs(t, readErr(t, client), syscall.ECONNRESET)
		require.ErrorIs(t, writeErr(client), syscall.ECONNRESET)
		require.ErrorIs(t, readErr(t, server), syscall.ECONNRESET)
		require.ErrorIs(t, writeErr(server), syscall.ECONNRESET)
		require.False(t, p.Live())
		time.Sleep(time.Minute)
		require.ErrorIs(t, readErr(t, client), syscall.ECONNRESET)
	})
}

func TestResetUnblocksBothSidesOfAStalledConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, server, p := connect(t, &n)
		p.Stall(conntest.Both)
		p.Window(conntest.ToServer, 0)
		time.AfterFunc(time.Second, p.Reset)
		start := time.Now()
		require.ErrorIs(t, writeErr(client), syscall.ECONNRESET)
		require.ErrorIs(t, readErr(t, server), syscall.ECONNRESET)
		require.Equal(t, time.Second, time.Since(start))
	})
}

func TestCutLetsSoManyBytesPass(t *testing.T) {
	var n conntest.Network
	client, server, p := connect(t, &n)
	write(t, server, "before")
	p.Cut(conntest.ToClient, 5)
	write(t, server, "abc")
	require.True(t, p.Live())
	write(t, server, "defgh") // its writer gets no error
	require.False(t, p.Live())
	read(t, client, "beforeabcde")
	require.Equal(t, io.EOF, readErr(t, client))
	require.ErrorIs(t, writeErr(client), syscall.EPIPE)
	require.Equal(t, io.EOF, readErr(t, server))
	require.ErrorIs(t, writeErr(server), syscall.EPIPE)
}

func TestCutInsideAWriteLargerThanTheWindowEndsTheWrite(t *testing.T) {
	var n conntest.Network
	client, server, p := connect(t, &n)
	p.Window(conntest.ToServer, 4)
	p.Cut(conntest.ToServer, 4)
	write(t, client, "0123456789")
	read(t, server, "0123")
	require.Equal(t, io.EOF, readErr(t, server))
}

func TestCutAtZeroIsNowAndNegativeIsNever(t *testing.T) {
	var n conntest.Network
	client, server, p := connect(t, &n)
	p.Cut(conntest.ToServer, 3)
	p.Cut(conntest.ToServer, -1)
	write(t, client, "hello")
	read(t, server, "hello")
	p.Cut(conntest.Both, 0)
	require.Equal(t, io.EOF, readErr(t, client))
	require.Equal(t, io.EOF, readErr(t, server))
}

func TestCutResetDeliversTheBytesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, server, p := connect(t, &n)
		p.Latency(conntest.ToClient, time.Second)
		p.CutReset(conntest.ToClient, 2)
		start := time.Now()
		write(t, server, "abc")
		read(t, client, "ab")
		require.ErrorIs(t, readErr(t, client), syscall.ECONNRESET)
		require.Equal(t, time.Second, time.Since(start))
		require.ErrorIs(t, readErr(t, server), syscall.ECONNRESET)
	})
}

func TestFINEndsOneDirectionOnly(t *testing.T) {
	var n conntest.Network
	client, server, p := connect(t, &n)
	write(t, server, "x")
	p.FIN(conntest.ToClient)
	read(t, client, "x")
	require.Equal(t, io.EOF, readErr(t, client))
	require.ErrorIs(t, writeErr(server), syscall.EPIPE)
	write(t, client, "still here")
	read(t, server, "still here")
}

func TestFINEndsAWriteThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, _, p := connect(t, &n)
		p.Window(conntest.ToServer, 0)
		p.Stall(conntest.ToServer)
		time.AfterFunc(time.Second, func() { p.FIN(conntest.ToServer) })
		require.ErrorIs(t, writeErr(client), syscall.EPIPE)
	})
}

func TestStalledBytesArriveAfterTheThaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, server, p := connect(t, &n)
		p.Stall(conntest.ToServer)
		start := time.Now()
		write(t, client, "into the void") // no error
		write(t, server, "the other way")
		read(t, client, "the other way")
		time.AfterFunc(time.Hour, func() { p.Thaw(conntest.ToServer) })
		read(t, server, "into the void")
		require.Equal(t, time.Hour, time.Since(start))
	})
}

func TestStallHidesTheEndOfTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, server, p := connect(t, &n)
		p.Stall(conntest.ToClient)
		require.NoError(t, server.Close())
		write(t, client, "who is there?")
		require.NoError(t, client.SetReadDeadline(time.Now().Add(time.Hour)))
		require.ErrorContains(t, readErr(t, client), "i/o timeout")
		require.NoError(t, client.SetReadDeadline(time.Time{}))
		p.Thaw(conntest.ToClient)
		require.Equal(t, io.EOF, readErr(t, client))
		require.ErrorIs(t, writeErr(client), syscall.EPIPE)
	})
}

func TestStalledWritesBlockWhenTheWindowIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, server, p := connect(t, &n)
		p.Stall(conntest.ToServer)
		go io.Copy(io.Discard, server)
		write(t, client, strings.Repeat("a", 64<<10))
		start := time.Now()
		require.NoError(t, client.SetWriteDeadline(start.Add(time.Minute)))
		require.ErrorContains(t, writeErr(client), "i/o timeout")
		require.Equal(t, time.Minute, time.Since(start))
		client.Close()
		p.Thaw(conntest.ToServer)
	})
}

func TestLatencyDelaysAndKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, server, p := connect(t, &n)
		start := time.Now()
		p.Latency(conntest.ToClient, 300*time.Millisecond)
		write(t, server, "a")
		time.Sleep(100 * time.Millisecond)
		write(t, server, "b")
		p.Latency(conntest.ToClient, 0)
		write(t, server, "c") // does not overtake
		server.Close()
		read(t, client, "a")
		require.Equal(t, 300*time.Millisecond, time.Since(start))
		read(t, client, "bc")
		require.Equal(t, 400*time.Millisecond, time.Since(start))
		require.Equal(t, io.EOF, readErr(t, client))
		require.Equal(t, 400*time.Millisecond, time.Since(start))
	})
}

func TestLateCloseWakesTheReaderAndTheWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, server, p := connect(t, &n)
		p.Latency(conntest.ToClient, time.Second)
		p.Window(conntest.ToServer, 0)
		start := time.Now()
		require.NoError(t, server.Close())
		written := make(chan error, 1)
		go func() { written <- writeErr(client) }()
		require.Equal(t, io.EOF, readErr(t, client))
		require.ErrorIs(t, <-written, syscall.EPIPE)
		require.Equal(t, time.Second, time.Since(start))
	})
}

func TestTrickleLetsItsShareArrivePerInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, server, p := connect(t, &n)
		start := time.Now()
		p.Trickle(conntest.ToClient, 2, 10*time.Millisecond)
		write(t, server, "abc")
		write(t, server, "de")
		server.Close()
		b := make([]byte, 10)
		for i, want := range []string{"ab", "cd", "e"} {
			k, err := client.Read(b)
			require.NoError(t, err)
			require.Equal(t, want, string(b[:k]))
			require.Equal(t, time.Duration(i+1)*10*time.Millisecond, time.Since(start))
		}
		require.Equal(t, io.EOF, readErr(t, client))
	})
}

func TestTrickleStartsANewIntervalAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, server, p := connect(t, &n)
		p.Trickle(conntest.ToClient, 2, 10*time.Millisecond)
		for range 2 {
			start := time.Now()
			write(t, server, "abc")
			read(t, client, "abc")
			require.Equal(t, 20*time.Millisecond, time.Since(start))
			time.Sleep(time.Second)
		}
	})
}

func TestTrickleOffLetsTheRestArriveAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, server, p := connect(t, &n)
		start := time.Now()
		p.Trickle(conntest.ToClient, 1, time.Second)
		write(t, server, "abcdef")
		time.AfterFunc(2500*time.Millisecond, func() { p.Trickle(conntest.ToClient, 0, 0) })
		read(t, client, "abcdef")
		require.Equal(t, 2500*time.Millisecond, time.Since(start))
	})
}

func TestInjectedBytesComeBetweenTwoWrites(t *testing.T) {
	var n conntest.Network
	client, server, p := connect(t, &n)
	p.Window(conntest.ToClient, 1)
	write(t, server, "a")
	p.Inject(conntest.ToClient, []byte("garbage")) // the window does not hold it
	read(t, client, "agarbage")
	write(t, server, "b")
	read(t, client, "b")
}
