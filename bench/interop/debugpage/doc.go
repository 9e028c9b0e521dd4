// Package debugpage tests the page of package reconnect/debug in a real Chromium, and makes its
// picture:
//
//	REDIAL_PICTURES=/tmp/pictures go test -run Picture ./debugpage
//
// It writes pictures for a wide screen, for a dark one and for a phone, and of the page of one
// connection. The first of them, light.png, is reconnect/debug/page.png.
package debugpage
