// Package datadog tests a complete daemon between tracers and a stand-in for the Datadog agent, over HTTP.
package datadog
