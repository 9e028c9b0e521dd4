package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
)

func TestAServerReadsWhatClientsWrite(t *testing.T) {
	for _, size := range []int{0, 1, 125, 126, 65_535, 65_536} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			want := bytes.Repeat([]byte{'x'}, size)
			for w, frame := range map[wire][]byte{
				lengthWire{}:    lengthWire{}.appendFrame(nil, want),
				webSocketWire{}: conntest.Frame{Head: conntest.Fin | 0x2, Mask: true, Payload: want}.Bytes(),
			} {
				r := bufio.NewReader(bytes.NewReader(append(frame, frame...)))
				for range 2 {
					p, answer, err := w.readFrame(r, make([]byte, 7))
					require.NoError(t, err)
					require.Nil(t, answer)
					require.True(t, bytes.Equal(want, p))
				}
				_, _, err := w.readFrame(r, nil)
				require.ErrorIs(t, err, io.EOF)
			}
		})
	}
}

func TestAServerAnswersPingsAndClosesAndRefusesTheRest(t *testing.T) {
	read := func(frame ...byte) (p, answer []byte, err error) {
		return webSocketWire{}.readFrame(bufio.NewReader(bytes.NewReader(frame)), nil)
	}
	_, answer, err := read(0x89, 0x82, 1, 2, 3, 4, 'h'^1, 'i'^2) // a ping
	require.NoError(t, err)
	require.Equal(t, "\x8a\x02hi", string(answer))
	_, answer, err = read(0x8a, 0x80, 1, 2, 3, 4) // a pong
	require.NoError(t, err)
	require.NotNil(t, answer)
	require.Empty(t, answer)
	_, answer, err = read(0x88, 0x82, 0, 0, 0, 0, 3, 232) // a close
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, "\x88\x02\x03\xe8", string(answer))
	for _, frame := range [][]byte{
		{0x02, 0x80, 0, 0, 0, 0},                                     // a fragment
		{0xc2, 0x80, 0, 0, 0, 0},                                     // a reserved bit
		{0x82, 0x00, 0, 0, 0, 0},                                     // no mask
		{0x82, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},       // 2^63 bytes and more
		{0x82, 0xff, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0}, // 2 GB
	} {
		p, answer, err := read(frame...)
		require.Error(t, err, "% x", frame)
		require.Nil(t, answer)
		require.Nil(t, p)
	}
}

func TestABlockHasAllFramesOrMakes64KiB(t *testing.T) {
	for _, w := range []struct{ size, count, want int }{{128, 3, 3}, {128, 100_000, 1 + 65536/132}, {4096, 100, 1 + 65536/4100}, {60_000, 5, 2}} {
		frames, n := block(lengthWire{}, payload(w.size), w.count)
		require.Equal(t, w.want, n)
		require.Len(t, frames, n*(w.size+4))
	}
}
