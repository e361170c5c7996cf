// Devices and networks that pages can imitate.

const networkProfiles = {
    'No Throttling': { latency: 0, download: -1, upload: -1 },
    'Slow 3G': { latency: 2000, download: 50_000, upload: 50_000 },
    'Fast 3G': { latency: 562.5, download: 180_000, upload: 84_375 },
};

const apple = (system, webkit, version, build, safari) => `Mozilla/5.0 (${system} like Mac OS X) AppleWebKit/${webkit} (KHTML, like Gecko) Version/${version} Mobile/${build} Safari/${safari}`;
const android = (system, kind = ' Mobile') => `Mozilla/5.0 (Linux; Android ${system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/75.0.3765.0${kind} Safari/537.36`;
const IPAD = apple('iPad; CPU OS 11_0', '604.1.34', '11.0', '15A5341f', '604.1');
const IOS_10 = apple('iPhone; CPU iPhone OS 10_3_1', '603.1.30', '10.0', '14E304', '602.1');
const IOS_11 = apple('iPhone; CPU iPhone OS 11_0', '604.1.38', '11.0', '15A372', '604.1');
const IOS_12 = apple('iPhone; CPU iPhone OS 12_0', '605.1.15', '12.0', '15E148', '604.1');

const devices = {};
for (const [name, width, height, deviceScaleFactor, userAgent] of [
    ['Galaxy S5', 360, 640, 3, android('5.0; SM-G900P Build/LRX21T')],
    ['Nexus 10', 800, 1280, 2, android('6.0.1; Nexus 10 Build/MOB31T', '')],
    ['Nexus 4', 384, 640, 2, android('4.4.2; Nexus 4 Build/KOT49H')],
    ['Nexus 5', 360, 640, 3, android('6.0; Nexus 5 Build/MRA58N')],
    ['Nexus 5X', 412, 732, 2.625, android('8.0.0; Nexus 5X Build/OPR4.170623.006')],
    ['Nexus 6', 412, 732, 3.5, android('7.1.1; Nexus 6 Build/N6F26U')],
    ['Nexus 6P', 412, 732, 3.5, android('8.0.0; Nexus 6P Build/OPP3.170518.006')],
    ['Nexus 7', 600, 960, 2, android('6.0.1; Nexus 7 Build/MOB30X', '')],
    ['Pixel 2', 411, 731, 2.625, android('8.0; Pixel 2 Build/OPD3.170816.012')],
    ['Pixel 2 XL', 411, 823, 3.5, android('8.0.0; Pixel 2 XL Build/OPD1.170816.004')],
    ['iPad', 768, 1024, 2, IPAD],
    ['iPad Mini', 768, 1024, 2, IPAD],
    ['iPad Pro', 1024, 1366, 2, IPAD],
    ['iPhone 5', 320, 568, 2, IOS_10],
    ['iPhone 6', 375, 667, 2, IOS_11],
    ['iPhone 6 Plus', 414, 736, 3, IOS_11],
    ['iPhone 7', 375, 667, 2, IOS_11],
    ['iPhone 7 Plus', 414, 736, 3, IOS_11],
    ['iPhone 8', 375, 667, 2, IOS_11],
    ['iPhone 8 Plus', 414, 736, 3, IOS_11],
    ['iPhone SE', 320, 568, 2, IOS_10],
    ['iPhone X', 375, 812, 3, IOS_11],
    ['iPhone XR', 414, 896, 3, IOS_12],
]) {
    const device = { userAgent, deviceScaleFactor, isMobile: true, hasTouch: true };
    devices[name] = { name, viewport: { width, height }, ...device };
    const turned = `${name} landscape`;
    devices[turned] = { name: turned, viewport: { width: height, height: width }, ...device };
}

const exports = { browser, chromium, devices, networkProfiles };
