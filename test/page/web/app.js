// A page with the OpenTelemetry SDK for browsers: it ends spans and exports them.
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, WebTracerProvider } from '@opentelemetry/sdk-trace-web';
import { OTLPTraceExporter as JSONExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';

const exporters = { json: JSONExporter, protobuf: ProtobufExporter };

// exportSpans ends the given number of spans with three names, and resolves when all are exported or
// given up.
window.exportSpans = async (endpoint, protocol, spans) => {
  const exporter = new exporters[protocol]({ url: `${endpoint}/v1/traces`, headers: { 'x-shop': 'web' } });
  const provider = new WebTracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'shop-web' }),
    spanProcessors: [new BatchSpanProcessor(exporter, { maxQueueSize: spans + 1 })],
  });
  const tracer = provider.getTracer('page');
  for (let i = 0; i < spans; i++) {
    tracer.startSpan(`click ${i % 3}`).end();
  }
  try {
    await provider.forceFlush();
    await provider.shutdown();
    return 'exported';
  } catch (error) {
    return String(error);
  }
};

// answerTo returns the part of a response that a script can read.
window.answerTo = async (url, media, body) => {
  const answer = await fetch(url, { method: 'POST', headers: { 'content-type': media }, body });
  return [answer.status, answer.headers.get('Retry-After')].join(' ');
};
