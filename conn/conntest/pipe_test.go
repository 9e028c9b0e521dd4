package conntest_test

import (
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
)

func TestCloseLetsWhatWasWrittenArrive(t *testing.T) {
	var n conntest.Network
	client, server, _ := connect(t, &n)
	write(t, client, "last words")
	require.NoError(t, client.Close())
	read(t, server, "last words")
	require.Equal(t, io.EOF, readErr(t, server))
	require.ErrorIs(t, writeErr(server), syscall.EPIPE)
	require.ErrorIs(t, readErr(t, client), net.ErrClosed)
	require.ErrorIs(t, writeErr(client), net.ErrClosed)
	require.ErrorIs(t, client.SetDeadline(time.Time{}), net.ErrClosed)
	require.ErrorIs(t, client.Close(), net.ErrClosed)
}

func TestCloseUnblocksItsOwnReadAndWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, _, p := connect(t, &n)
		p.Window(conntest.ToServer, 0)
		p.Stall(conntest.Both)
		errs := make(chan error, 2) // one each
		go func() { _, err := client.Read(make([]byte, 1)); errs <- err }()
		go func() { errs <- writeErr(client) }()
		synctest.Wait()
		require.NoError(t, client.Close())
		require.ErrorIs(t, <-errs, net.ErrClosed)
		require.ErrorIs(t, <-errs, net.ErrClosed)
	})
}

func TestCloseWriteHalfCloses(t *testing.T) {
	var n conntest.Network
	client, server, p := connect(t, &n)
	write(t, client, "question")
	require.NoError(t, client.(interface{ CloseWrite() error }).CloseWrite())
	read(t, server, "question")
	require.Equal(t, io.EOF, readErr(t, server))
	require.ErrorIs(t, writeErr(client), syscall.EPIPE)
	write(t, server, "answer")
	read(t, client, "answer")
	require.True(t, p.Live())
	require.NoError(t, client.Close())
	require.ErrorIs(t, writeErr(server), syscall.EPIPE, "nobody reads it any more")
}

func TestCloseWriteEndsAWriteThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, _, p := connect(t, &n)
		p.Window(conntest.ToServer, 0)
		p.Stall(conntest.ToServer)
		time.AfterFunc(time.Second, func() { client.(interface{ CloseWrite() error }).CloseWrite() })
		require.ErrorIs(t, writeErr(client), syscall.EPIPE)
	})
}

func TestDeadlinesEndReadsAndWritesExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, server, p := connect(t, &n)
		start := time.Now()
		require.NoError(t, client.SetReadDeadline(start.Add(3*time.Second)))
		require.ErrorIs(t, readErr(t, client), os.ErrDeadlineExceeded)
		require.Equal(t, 3*time.Second, time.Since(start))

		p.Window(conntest.ToServer, 1)
		require.NoError(t, client.SetWriteDeadline(start.Add(5*time.Second)))
		written, err := client.Write([]byte("abc"))
		require.Equal(t, 1, written)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, 5*time.Second, time.Since(start))
		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		require.True(t, timeout.Timeout())

		require.NoError(t, client.SetDeadline(time.Time{}))
		write(t, server, "later")
		read(t, client, "later")
	})
}

func TestPastDeadlineComesBeforeData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, server, _ := connect(t, &n)
		write(t, server, "x")
		require.NoError(t, client.SetReadDeadline(time.Now()))
		require.ErrorIs(t, readErr(t, client), os.ErrDeadlineExceeded)
	})
}

func TestOvertakenDeadlineDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, _, _ := connect(t, &n)
		start := time.Now()
		require.NoError(t, client.SetReadDeadline(start.Add(time.Second)))
		require.NoError(t, client.SetReadDeadline(start.Add(time.Minute)))
		require.ErrorIs(t, readErr(t, client), os.ErrDeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestFullWindowBlocksUntilThePeerReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, server, _ := connect(t, &n)
		start := time.Now()
		write(t, client, strings.Repeat("a", 64<<10)) // the window
		time.AfterFunc(time.Second, func() { io.ReadFull(server, make([]byte, 10)) })
		write(t, client, strings.Repeat("b", 10))
		require.Equal(t, time.Second, time.Since(start))
	})
}

func TestFullWindowIsFreedByThePeersClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, server, p := connect(t, &n)
		p.Window(conntest.ToServer, 0)
		start := time.Now()
		time.AfterFunc(time.Second, func() { server.Close() })
		require.ErrorIs(t, writeErr(client), syscall.EPIPE)
		require.Equal(t, time.Second, time.Since(start))
	})
}

func TestWindowIsRestoredByANegativeSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, server, p := connect(t, &n)
		p.Window(conntest.Both, 0)
		start := time.Now()
		time.AfterFunc(time.Minute, func() { p.Window(conntest.ToServer, -1) })
		write(t, client, "x")
		require.Equal(t, time.Minute, time.Since(start))
		read(t, server, "x")
	})
}

// On a net.Pipe two writers on one end would hang the bubble.
func TestTwoWritersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, server, p := connect(t, &n)
		p.Window(conntest.ToServer, 3)
		var work sync.WaitGroup
		for _, s := range []string{"aaaaaaaaaa", "bbbbbbbbbb"} {
			work.Go(func() { io.WriteString(client, s) })
		}
		time.Sleep(time.Second) // passes only if both are durably blocked
		b := make([]byte, 20)
		_, err := io.ReadFull(server, b)
		require.NoError(t, err)
		work.Wait()
		require.Contains(t, []string{"aaaaaaaaaabbbbbbbbbb", "bbbbbbbbbbaaaaaaaaaa"}, string(b))
	})
}

func TestEveryWriterGetsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, _, p := connect(t, &n)
		p.Window(conntest.ToServer, 0)
		p.Stall(conntest.ToServer) // or what arrives wakes them
		var work sync.WaitGroup
		for range 50 {
			work.Go(func() { io.WriteString(client, "x") })
		}
		synctest.Wait()
		p.Window(conntest.ToServer, -1)
		work.Wait()
		require.EqualValues(t, 50, p.Written(conntest.ToServer))
	})
}

func TestUnreadBytesSurviveALargeWrite(t *testing.T) {
	var n conntest.Network
	client, server, _ := connect(t, &n)
	first, second := strings.Repeat("a", 2000)+strings.Repeat("b", 1000), strings.Repeat("c", 3000)
	write(t, client, first)
	read(t, server, first[:1000])
	write(t, client, second)
	read(t, server, first[1000:]+second)
}

func TestDeadlineEndsAWriterThatWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		client, _, p := connect(t, &n)
		p.Window(conntest.ToServer, 0)
		errs := make(chan error, 2) // one for each writer
		for range 2 {
			go func() { errs <- writeErr(client) }()
		}
		require.NoError(t, client.SetWriteDeadline(time.Now().Add(time.Second)))
		require.ErrorIs(t, <-errs, os.ErrDeadlineExceeded)
		require.ErrorIs(t, <-errs, os.ErrDeadlineExceeded)
	})
}

func TestPipeKeepsTheBytesOfAStreamInOrder(t *testing.T) {
	var n conntest.Network
	client, server, p := connect(t, &n)
	p.Window(conntest.ToServer, 1000)
	text := strings.Repeat("0123456789", 50_000)
	go func() { // ends with the Close below
		for s := text; s != ""; {
			k := min(len(s), 777)
			io.WriteString(client, s[:k])
			s = s[k:]
		}
		client.Close()
	}()
	got, err := io.ReadAll(server)
	require.NoError(t, err)
	require.True(t, text == string(got))
	require.EqualValues(t, len(text), p.Written(conntest.Both))
}

func TestEndsKnowTheirAddresses(t *testing.T) {
	var n conntest.Network
	client, server, p := connect(t, &n)
	require.Equal(t, addr, client.RemoteAddr().String())
	require.Equal(t, "tcp", client.LocalAddr().Network())
	require.Equal(t, client.LocalAddr(), server.RemoteAddr())
	require.Equal(t, client.RemoteAddr(), server.LocalAddr())
	require.Same(t, client, p.Client())
	require.Same(t, server, p.Server())
}
