// Runs in each new document: reports the web vitals, as https://web.dev/articles/vitals defines them.

(() => {
    if (self.__gakeVitals) return;
    Object.defineProperty(self, '__gakeVitals', { value: true });
    const bounds = { TTFB: [800, 1800], FCP: [1800, 3000], LCP: [2500, 4000], CLS: [0.1, 0.25], INP: [200, 500] };
    const sent = {};
    const send = (name, value) => {
        if (sent[name] === value) return;
        sent[name] = value;
        const [good, poor] = bounds[name];
        const rating = value <= good ? 'good' : value <= poor ? 'needs-improvement' : 'poor';
        self.__gakeVital?.(JSON.stringify({ name, value, rating, url: location.href }));
    };
    const observe = (type, see, options) => {
        try {
            const observer = new PerformanceObserver((list) => list.getEntries().forEach(see));
            observer.observe({ type, buffered: true, ...options });
            return observer;
        } catch {
            return { takeRecords: () => [] };
        }
    };
    const started = () => performance.getEntriesByType('navigation')[0];
    const activation = () => started()?.activationStart ?? 0;
    let hasPaint = false;
    const seePaint = (entry) => {
        if (entry.name !== 'first-contentful-paint' || hasPaint) return;
        hasPaint = true;
        send('FCP', Math.max(0, entry.startTime - activation()));
    };
    const paintObserver = observe('paint', seePaint);
    let largest;
    let isLargestFinal = false;
    const seeLargest = (entry) => { if (!isLargestFinal) largest = Math.max(0, entry.startTime - activation()); };
    const largestObserver = observe('largest-contentful-paint', seeLargest);
    const sendLargest = () => {
        largestObserver.takeRecords().forEach(seeLargest);
        isLargestFinal = true;
        if (largest !== undefined) send('LCP', largest);
    };
    let [worst, current, first, last] = [0, 0, 0, 0];
    // The largest sum of shifts in a window of 5 s with gaps under 1 s.
    const seeShift = (entry) => {
        if (entry.hadRecentInput) return;
        const isSame = current && entry.startTime - last < 1000 && entry.startTime - first < 5000;
        if (!isSame) [current, first] = [0, entry.startTime];
        current += entry.value;
        last = entry.startTime;
        worst = Math.max(worst, current);
    };
    const shiftObserver = observe('layout-shift', seeShift);
    const interactions = new Map();
    const seeEvent = (entry) => {
        if (!entry.interactionId) return;
        interactions.set(entry.interactionId, Math.max(interactions.get(entry.interactionId) ?? 0, entry.duration));
        // The ones beyond the slowest few do not matter.
        if (interactions.size > 200) interactions.delete([...interactions].sort((a, b) => a[1] - b[1])[0][0]);
    };
    const eventObserver = observe('event', seeEvent, { durationThreshold: 40 });
    const inputObserver = observe('first-input', seeEvent);
    const sendAll = () => {
        paintObserver.takeRecords().forEach(seePaint);
        sendLargest();
        shiftObserver.takeRecords().forEach(seeShift);
        [...eventObserver.takeRecords(), ...inputObserver.takeRecords()].forEach(seeEvent);
        if (hasPaint) send('CLS', worst);
        const slowest = [...interactions.values()].sort((a, b) => b - a);
        const count = Math.floor((performance.interactionCount ?? slowest.length) / 50);
        if (slowest.length) send('INP', slowest[Math.min(count, slowest.length - 1)]);
    };
    const sendFirstByte = () => {
        const entry = started();
        if (entry && entry.responseStart > 0) send('TTFB', Math.max(0, entry.responseStart - activation()));
    };
    if (document.readyState === 'complete') setTimeout(sendFirstByte);
    else addEventListener('load', () => setTimeout(sendFirstByte));
    for (const type of ['keydown', 'click']) addEventListener(type, () => setTimeout(sendLargest), { once: true, capture: true });
    addEventListener('visibilitychange', () => { if (document.visibilityState === 'hidden') sendAll(); }, true);
    addEventListener('pagehide', sendAll, true);
})();
