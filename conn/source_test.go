package conn

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// script is a body that answers each Read by the next step.
type script struct {
	steps []func(p []byte) (int, error)
	asked []int // the sizes of the buffers
}

func (s *script) Read(p []byte) (int, error) {
	s.asked = append(s.asked, len(p))
	step := s.steps[0]
	s.steps = s.steps[1:]
	return step(p)
}

// gives returns a step of at most n bytes and err.
func gives(n int, err error) func([]byte) (int, error) {
	return func(p []byte) (int, error) { return min(n, len(p)), err }
}

func newSource(body io.Reader) *source {
	return &source{body: readOnly{Reader: body}, wire: new(Wire)}
}

// readOnly is a body that is only read.
type readOnly struct {
	io.Reader
	io.WriteCloser // nil
}

func TestErrorThatComesWithBytesIsReturnedAfterThem(t *testing.T) {
	cause := errors.New("reset")
	s := newSource(&script{steps: []func([]byte) (int, error){gives(3, cause)}})
	p := make([]byte, 8)
	n, err := s.ask(p)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.NoError(t, s.ended())
	for range 2 {
		_, err = s.ask(p)
		require.Equal(t, cause, err)
	}
	require.Equal(t, cause, s.ended())
}

// A body that gives neither bytes nor an error is asked again, but not for ever.
func TestAReadOfNothingIsTriedAgain(t *testing.T) {
	s := newSource(&script{steps: []func([]byte) (int, error){gives(0, nil), gives(0, nil), gives(1, nil)}})
	n, err := s.ask(make([]byte, 8))
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = newSource(nothing{}).ask(make([]byte, 8))
	require.ErrorIs(t, err, io.ErrNoProgress)
}

type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, nil }

// asks returns the sizes asked of a body that gives n bytes in turn, when frames of
// size bytes are read from the stream into buf.
func asks(t *testing.T, size int, buf []byte, sizes ...int) []int {
	t.Helper()
	body := &script{}
	total := 0
	for _, n := range sizes {
		body.steps = append(body.steps, gives(n, nil))
		total += n
	}
	s := &stream{source: *newSource(body)}
	for range total / size {
		for len(s.win) < min(size, 4) { // the header
			require.NoError(t, s.more(buf))
		}
		s.left = size
		_, err := s.payload(nil, 1<<30)
		require.NoError(t, err)
		s.finish(len(s.win) > 0)
	}
	require.Empty(t, body.steps)
	return body.asked
}

func TestAnIdleStreamWaitsWithASmallBuffer(t *testing.T) {
	const small, large = smallSize, aheadSize
	require.Equal(t, []int{small, small, small}, asks(t, 100, nil, 100, 100, 100))
	require.Equal(t, []int{small, large, small, large}, asks(t, 600, nil, small, 600-small, small, 600-small))
}

// Inside a message a full read shows that there is more; until all is consumed.
func TestABurstIsReadAhead(t *testing.T) {
	const small, large = smallSize, aheadSize
	require.Equal(t, []int{small, large, large, small}, asks(t, 100, nil, small, large, 33, 100))
}

// Promise 2: between two Reads a connection holds no empty buffer for bursts.
func TestBufferOfBurstIsGivenBackByItsLastRead(t *testing.T) {
	l := plain(t, nil)
	l.send(strings.Repeat(frame(fin|text, "hello"), 1000))
	for n := range 1000 {
		_, err := l.Read(nil)
		require.NoError(t, err)
		require.Equal(t, n == 999 || n < 18, l.wire.stream.ahead == nil, n) // a small buffer comes first
	}
}

func TestTheCallersBufferIsUsedToWait(t *testing.T) {
	buf := make([]byte, 5000)
	require.Equal(t, []int{5000, 5000}, asks(t, 4000, buf, 4000, 4000))
	require.Equal(t, []int{aheadSize}, asks(t, 4000, make([]byte, 1<<20), 4000))
	require.Equal(t, []int{smallSize}, asks(t, 100, make([]byte, smallSize), 100))
}

// The rest of a large message goes where it belongs.
func TestALargeRestGoesStraightToItsBuffer(t *testing.T) {
	body := &script{steps: []func([]byte) (int, error){gives(smallSize, nil), gives(1<<20, nil)}}
	s := &stream{source: *newSource(body), left: 1 << 20}
	require.NoError(t, s.more(nil))
	buf, err := s.payload(make([]byte, 0, 1<<20), 1<<20)
	require.NoError(t, err)
	require.Len(t, buf, 1<<20)
	require.Equal(t, []int{smallSize, 1<<20 - smallSize}, body.asked)
	require.Nil(t, s.ahead)
}

// Without a copy, if the reader has room for half of a buffer for bursts.
func TestLargeReadOfBurstGoesStraightToItsBuffer(t *testing.T) {
	const half = aheadSize / 2
	for size, asked := range map[int]int{half - 1: aheadSize, half: half} {
		body := &script{steps: []func([]byte) (int, error){gives(idleSize, nil), gives(1, nil)}}
		s := newSource(body)
		for range 2 {
			_, err := s.Read(make([]byte, size))
			require.NoError(t, err)
		}
		require.Equal(t, []int{idleSize, asked}, body.asked)

		body = &script{steps: []func([]byte) (int, error){gives(smallSize, nil), gives(1<<20, nil)}}
		st := &stream{source: *newSource(body), left: smallSize + size}
		require.NoError(t, st.more(nil))
		_, err := st.payload(make([]byte, 0, smallSize+size), 1<<20)
		require.NoError(t, err)
		require.Equal(t, []int{smallSize, asked}, body.asked)
	}
}

// piecemeal gives what it has in pieces of any size, its end with the last.
type piecemeal struct {
	data   []byte
	random *rand.Rand
}

func (m *piecemeal) Read(p []byte) (n int, err error) {
	if m.random.IntN(2) == 0 {
		p = p[:m.random.IntN(len(p)+1)]
	}
	n = copy(p, m.data)
	if m.data = m.data[n:]; len(m.data) == 0 {
		err = io.EOF
	}
	return n, err
}

func TestNoByteIsLostOrChanged(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		want := make([]byte, random.IntN(1<<20))
		for i := range want {
			want[i] = byte(random.Uint32())
		}
		s := newSource(&piecemeal{data: want, random: random})
		var got []byte
		for err := error(nil); err == nil; {
			p := make([]byte, []int{1, frameSize, aheadSize / 2, 100_000}[random.IntN(4)])
			var n int
			n, err = s.Read(p)
			got = append(got, p[:n]...)
			if random.IntN(3) == 0 { // a message ends here
				s.finish(len(s.win) > 0)
			}
		}
		require.True(t, bytes.Equal(want, got), seed)
	}
}

// The same for the parts of a WebSocket's message.
func TestNoByteOfAPayloadIsLostOrChanged(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		want := make([]byte, random.IntN(1<<20))
		for i := range want {
			want[i] = byte(random.Uint32())
		}
		s := &stream{source: *newSource(&piecemeal{data: want, random: random})}
		var got []byte
		for len(got) < len(want) {
			s.left = min(1+random.IntN(1<<[]int{4, 10, 18}[random.IntN(3)]), len(want)-len(got))
			if len(s.win) == 0 {
				require.NoError(t, s.more(make([]byte, random.IntN(10_000))))
			}
			part, err := s.payload(nil, 1<<30)
			require.NoError(t, err)
			got = append(got, part...)
			s.finish(len(s.win) > 0)
		}
		require.True(t, bytes.Equal(want, got), seed)
	}
}
