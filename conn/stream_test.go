package conn

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// script is a body that answers each Read by the next step.
type script struct {
	io.WriteCloser // nil
	steps          []func(p []byte) (int, error)
	asked          []int // the sizes of the buffers
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

// asks returns the sizes asked of a body that gives n bytes in turn, when the
// stream is drained 4 KiB at a time.
func asks(t *testing.T, sizes ...int) []int {
	body := &script{}
	total := 0
	for _, n := range sizes {
		body.steps = append(body.steps, gives(n, nil))
		total += n
	}
	s := &stream{body: body}
	for p := make([]byte, bufioSize); total > 0; {
		n, err := s.Read(p)
		require.NoError(t, err)
		total -= n
	}
	require.Nil(t, s.ahead, "a drained stream holds no buffer")
	return body.asked
}

func TestBurstIsReadAhead(t *testing.T) {
	const small, large = bufioSize, aheadSize
	require.Equal(t, []int{small, small}, asks(t, 100, 200))
	require.Equal(t, []int{small, large, small}, asks(t, small, 9000, 5), "until it is drained")
	require.Equal(t, []int{small, large, large, small}, asks(t, small, large, 9000, 5), "a full buffer means more")
}

// A server whose messages just fill bufio's buffer looks like a burst each time
// that it falls silent, and would leave us idle with a buffer in hand.
func TestFalseAlarmsAreTakenLessAndLessOften(t *testing.T) {
	all := make([]int, 400)
	for i := range all {
		all[i] = bufioSize
	}
	ahead := 0
	for _, n := range asks(t, all...) {
		if n == aheadSize {
			ahead++
		}
	}
	require.Equal(t, 6+5, ahead, "after 1, 2, 4, ... 32, and then each 64 reads")
}

func TestBurstEndsTheDoubt(t *testing.T) {
	const small, large = bufioSize, aheadSize
	require.Equal(t, []int{small, large, small, small, large, small, large},
		asks(t, small, small, small, small, 9000, small, 1), "a false alarm, then two bursts")
}

func TestLargeReadGoesStraightToItsBuffer(t *testing.T) {
	body := &script{steps: []func([]byte) (int, error){gives(bufioSize, nil), gives(1<<20, nil), gives(1, nil)}}
	s := &stream{body: body}
	for _, size := range []int{bufioSize, 1 << 20, bufioSize} {
		_, err := s.Read(make([]byte, size))
		require.NoError(t, err)
	}
	require.Equal(t, []int{bufioSize, 1 << 20, bufioSize}, body.asked)
}

func TestErrorThatComesWithBytesIsToldAfterThem(t *testing.T) {
	cause := errors.New("reset")
	body := &script{steps: []func([]byte) (int, error){gives(3, cause)}}
	s := &stream{body: body}
	p := make([]byte, 8)
	n, err := s.Read(p)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.Nil(t, s.told.Load())
	for range 2 {
		_, err = s.Read(p)
		require.Equal(t, cause, err)
	}
	require.Equal(t, cause, *s.told.Load())
}

// piecemeal gives what it has in pieces of any size, its end with the last.
type piecemeal struct {
	io.WriteCloser // nil
	data           []byte
	random         *rand.Rand
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
		s := &stream{body: &piecemeal{data: want, random: random}}
		var got []byte
		for err := error(nil); err == nil; {
			p := make([]byte, []int{1, bufioSize, aheadSize / 2, 100_000}[random.IntN(4)])
			var n int
			n, err = s.Read(p)
			got = append(got, p[:n]...)
		}
		require.True(t, bytes.Equal(want, got), seed)
	}
}
