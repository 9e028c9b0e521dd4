package terminal

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func linesOf(r io.Reader, limit int) (all []string) {
	in := NewInput(r, limit)
	defer in.Close()
	for line := range in.Lines() { // until it ends
		all = append(all, line)
	}
	return all
}

func TestLinesComeWithoutTheirEnds(t *testing.T) {
	require.Equal(t, []string{"one", "", "two", "three"}, linesOf(strings.NewReader("one\n\ntwo\r\nthree"), 10))
	require.Empty(t, linesOf(strings.NewReader(""), 10))
	require.Equal(t, []string{"half"}, linesOf(io.MultiReader(strings.NewReader("half"), iotest.ErrReader(os.ErrClosed)), 10))
}

func TestALineThatIsTooLongIsCutBehindTheLimit(t *testing.T) {
	long := strings.Repeat("x", 10000)
	require.Equal(t, []string{long, long[:6001], "y"}, append(linesOf(strings.NewReader(long+"\n"), 10000), linesOf(strings.NewReader(long+"\ny\n"), 6000)...))
	require.Equal(t, []string{"12345"}, linesOf(strings.NewReader("12345\r\n"), 5))
}

func TestACarriageReturnInALineIsKept(t *testing.T) {
	require.Equal(t, []string{"one\rtwo", "three\r"}, linesOf(strings.NewReader("one\rtwo\r\nthree\r\r\n"), 10))
	require.Equal(t, []string{"12345\r"}, linesOf(strings.NewReader("12345\r678\n"), 5), "too long, and so the receiver sees")
}

// begun returns an Input that has read text, of which "first" was received, and that waits for the
// keyboard next. That must be closed.
func begun(t *testing.T, text string) (*Input, io.Closer) {
	more, keyboard := io.Pipe()
	in := NewInput(io.MultiReader(strings.NewReader("first\n"+text), more), 10)
	require.Equal(t, "first", <-in.Lines())
	return in, keyboard
}

func TestWhatWasReadCanBeTakenInTheEnd(t *testing.T) {
	for text, want := range map[string][]string{"": nil, "one\ntwo\n": {"one", "two"}, "one\nhalf": {"one"}, "\n": {""}} {
		in, keyboard := begun(t, text)
		require.Equal(t, want, in.Rest())
		require.Empty(t, in.Rest(), "all was taken")
		in.Close()
		require.NoError(t, keyboard.Close())
	}
}

func TestTheRestHasTheLastLineOfAnInputThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := NewInput(strings.NewReader("one\ntwo"), 10)
		require.Equal(t, "one", <-in.Lines())
		synctest.Wait() // so that the end is read
		require.Equal(t, []string{"two"}, in.Rest())
		in.Close()
	})
}

// endless counts its calls, each of which returns a line.
type endless struct{ calls int }

func (e *endless) Read(b []byte) (int, error) {
	e.calls++
	return copy(b, "x\n"), nil
}

func TestTheRestReadsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &endless{}
		in := NewInput(r, 10)
		synctest.Wait()
		require.Equal(t, []string{"x"}, in.Rest())
		require.Equal(t, 1, r.calls)
		in.Close()
	})
}

func TestWhatARestDidNotWaitForIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		more, keyboard := io.Pipe()
		in := NewInput(more, 10)
		synctest.Wait()
		require.Empty(t, in.Rest())
		_, err := keyboard.Write([]byte("late\n"))
		require.NoError(t, err)
		_, open := <-in.Lines()
		require.False(t, open)
		in.Close()
	})
}

// goleak sees a goroutine that goes on.
func TestReadingStopsWhenItIsClosed(t *testing.T) {
	for _, text := range []string{"", "one\ntwo\n", "half"} {
		in, keyboard := begun(t, text)
		in.Close()
		require.NoError(t, keyboard.Close())
	}
}

func TestEachTakesTheLinesThatWereReadHoweverItEnds(t *testing.T) {
	for name, end := range map[string]func(stop func(), done chan struct{}){
		"the context": func(stop func(), _ chan struct{}) { stop() },
		"done":        func(_ func(), done chan struct{}) { close(done) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				done := make(chan struct{})
				more, keyboard := io.Pipe()
				in := NewInput(io.MultiReader(strings.NewReader(strings.Repeat("x\n", 50)+"half"), more), 100)
				synctest.Wait() // so that all are read
				end(stop, done)
				n := 0
				in.Each(ctx, done, func(string) { n++ })
				require.Equal(t, 50, n)
				require.NoError(t, keyboard.Close())
			})
		})
	}
}
