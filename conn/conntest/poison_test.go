package conntest_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
)

func TestPoisonSpoilsWhatWasKeptOfAReusedBuffer(t *testing.T) {
	f := conntest.NewFake(nil)
	f.Deliver(text("a longer message"), text("b"))
	c := conntest.Poison(f)
	first, err := c.Read(make([]byte, 0, 64))
	require.NoError(t, err)
	require.Equal(t, text("a longer message"), first)
	second, err := c.Read(first.Data)
	require.NoError(t, err)
	require.Equal(t, text("b"), second)
	want := append([]byte("b"), bytes.Repeat([]byte{0xDB}, len(first.Data)-1)...)
	require.Equal(t, want, first.Data)
}

func TestPoisonSpoilsTheOldBufferBeforeTheNextMessageComes(t *testing.T) {
	f := conntest.NewFake(nil)
	f.Deliver(text("kept"))
	c := conntest.Poison(f)
	m, err := c.Read(nil)
	require.NoError(t, err)
	f.Fail(errBoom)
	_, err = c.Read(m.Data)
	require.ErrorIs(t, err, errBoom)
	require.Equal(t, bytes.Repeat([]byte{0xDB}, 4), m.Data)
}

func TestPoisonSpoilsTheBufferThatAReaderIsAskedFor(t *testing.T) {
	f := conntest.NewFake(&conntest.FakeOptions{Transport: true})
	f.Deliver(text("b"))
	buf := []byte("kept")
	m, err := conntest.Poison(f.Conn()).(conn.Transport).ReadBuffer(func(int) []byte { return buf })
	require.NoError(t, err)
	require.Equal(t, text("b"), m)
	require.Equal(t, "b\xdb\xdb\xdb", string(buf))
}
