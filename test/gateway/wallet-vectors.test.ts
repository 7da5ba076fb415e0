import { describe, expect, it } from '@jest/globals';
import { parseWallet, walletAndTagKey, type WalletFamily } from '../../src/gateway/wallet.js';

/** Addresses that the networks' own documents and programs are tested with. */

const XRP = [
  'r9cZA1mLK5R5Am25ArfXFmqgNwjZgnfk59 - X7AcgcsBL6XDcUb289X4mJ8djcdyKaB5hJDWMArnXr61cqZ T719a5UwUCnEs54UsxG9CJYYDhwmFCqkr7wxCcNcfZ6p5GZ',
  'r9cZA1mLK5R5Am25ArfXFmqgNwjZgnfk59 14 X7AcgcsBL6XDcUb289X4mJ8djcdyKaGo2K5VpXpmCqbV2gS T719a5UwUCnEs54UsxG9CJYYDhwmFCvqXVCALUGJGSbNV3x',
  'rLczgQHxPhWtjkaQqn3Q6UM8AbRbbRvs5K - XVZVpQj8YSVpNyiwXYSqvQoQqgBttTxAZwMcuJd4xteQHyt TVVrSWtmQQssgVcmoMBcFQZKKf56QscyWLKnUyiuZW8ALU4',
  'rpZc4mVfWUif9CRoHRKKcmhu1nx2xktxBo 58 X7YenJqxv3L66CwhBSfd3N8RzGXxYqV56ZkTCa9UCzgaao1 T77wVQzA8ntj9wvCTNiQpNYLT5hmhR9kej6uxm4jGcQD7rZ',
  'rsA2LpzuawewSBQXkiju3YQTMzW13pAAdW 23480 X7d3eHCXzwBeWrZec1yT24iZerQjYL8m8zCJ16ACxu1BrBY T7YChPFWifjCAXLEtg5N74c7fSAYsvSokwcmBPBUZWhxH5P',
  'rGWrZyQqhTp9Xu7G5Pkayo7bXjH4k4QYpf 0 XVLhHMPHU98es4dbozjVtdWzVrDjtV8AqEL4xcZj5whKbmc TVE26TYGhfLC7tQDno7G8dGtxSkYQnSy8RHqGHoGJ59spi2',
  'rGWrZyQqhTp9Xu7G5Pkayo7bXjH4k4QYpf 65591 XVLhHMPHU98es4dbozjVtdWzVrDjtVozpjdhPQVdt3ghaWw TVE26TYGhfLC7tQDno7G8dGtxSkYQn7ryu2W6njw7mT1jmS',
  'rGWrZyQqhTp9Xu7G5Pkayo7bXjH4k4QYpf 4294967294 XVLhHMPHU98es4dbozjVtdWzVrDjtV1kAsixQTdMjbWi39u TVE26TYGhfLC7tQDno7G8dGtxSkYQnX8tDFQ53itLNqs6vU',
  'rPEPPER7kfTD9w2To4CQk6UCfuHM9c6GDY 13371337 XV5sbjUmgPpvXv4ixFWZ5ptAYZ6PD2qwGkhgc48zzcx6Gkr TVd2rqMkYL2AyS97NdELcpeiprNBjwVUDvp3vhpXbNhLwJi',
];

describe('XRP Ledger, xrpl.js', () => {
  it.each(XRP.map((line) => line.split(' ')))('%s with tag %s', (classic = '', tag = '', ...extended) => {
    const whole = tag === '-' ? classic : `${classic}:${tag}`;
    for (const address of [whole, ...extended]) {
      expect([parseWallet(address), walletAndTagKey(address)]).toMatchObject([{ family: 'xrp', key: classic }, whole]);
      expect(parseWallet(address).problem).toBeUndefined();
    }
  });

  it('refuses an X-address with a tag of 64 bits', () => {
    expect(parseWallet('XVLhHMPHU98es4dbozjVtdWzVrDjtV18pX8zeUygYrCgrPh').problem).toBeDefined();
  });
});

/** Raw, then friendly: the documents of TON, ton-core, tongo. */
const TON = [
  `0:${'0'.repeat(64)} EQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAM9c`,
  `-1:${'0'.repeat(64)} Ef8AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAADAU`,
  `-1:${'3'.repeat(64)} Ef8zMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM0vF`,
  `-1:${'5'.repeat(64)} Ef9VVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVbxn`,
  '-1:34517c7bdf5187c55af4f8b61fdc321588c7ab768dee24b006df29106458d7cf Ef80UXx731GHxVr0-LYf3DIViMerdo3uJLAG3ykQZFjXz2kW',
  '0:83dfd552e63729b472fcbcc8c45ebcc6691702558b68ec7527e1ba403a0f31a8 EQCD39VS5jcptHL8vMjEXrzGaRcCVYto7HUn4bpAOg8xqB2N UQCD39VS5jcptHL8vMjEXrzGaRcCVYto7HUn4bpAOg8xqEBI',
];

describe('TON', () => {
  it.each(TON.map((line) => line.split(' ')))('%s', (raw = '', ...friendly) => {
    for (const address of [raw, ...friendly]) {
      expect(parseWallet(address)).toEqual({ family: 'ton', key: raw, tag: undefined, problem: undefined });
    }
  });
});

/** The specification of CashAddr, with hashes of every size. */
const CASH = `
qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a qr95sy3j9xwd2ap32xkykttr4cvcu7as4y0qverfuy
qqq3728yw0y47sqn6l2na30mcw6zm78dzqre909m2r ppm2qsznhks23z7629mms6s4cwef74vcwvn0h829pq
pr95sy3j9xwd2ap32xkykttr4cvcu7as4yc93ky28e pqq3728yw0y47sqn6l2na30mcw6zm78dzq5ucqzc37
qr6m7j9njldwwzlg9v7v53unlr4jkmx6eylep8ekg2 q9adhakpwzztepkpwp5z0dq62m6u5v5xtyj7j3h2ws4mr9g0
qgagf7w02x4wnz3mkwnchut2vxphjzccwxgjvvjmlsxqwkcw59jxxuz
qvch8mmxy0rtfrlarg7ucrxxfzds5pamg73h7370aa87d80gyhqxq5nlegake
qnq8zwpj8cq05n7pytfmskuk9r4gzzel8qtsvwz79zdskftrzxtar994cgutavfklv39gr3uvz
qh3krj5607v3qlqh5c3wq3lrw3wnuxw0sp8dv0zugrrt5a3kj6ucysfz8kxwv2k53krr7n933jfsunqex2w82sl
qmvl5lzvdm6km38lgga64ek5jhdl7e3aqd9895wu04fvhlnare5937w4ywkq57juxsrhvw8ym5d8qx7sz7zz0zvcypqscw8jd03f
qlg0x333p4238k0qrc5ej7rzfw5g8e4a4r6vvzyrcy8j3s5k0en7calvclhw46hudk5flttj6ydvjc0pv3nchp52amk97tqa5zygg96mtky5sv5w
`;

/** BIP-173, BIP-350, BIP-84, BIP-86; the other networks' own. */
const BECH32 = `
bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4 tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sl5k7
bc1pw508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kt5nd6y bc1sw50qgdz25j bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs
tb1qqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesrxh6hy tb1pqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesf3hn0c
bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0
bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu bc1qnjg0jd8228aq7egyzacy8cys3knf9xvrerkf9g bc1q8c6fshw2dlwun7ekn9qwf37cu2rn755upcp6el
bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr
ltc1qhdhvrwe6rgqns8fz28tee0hphr5x7ulw5exv4w ltc1zjwls6j8c4u
ltcmweb1qqt9rwznnxzkghv4s5wgtwxs0m0ry6n3atp95f47slppapxljde3xyqmdlnrc8ag7y2k354jzdc4pc4ks0kr43jehr77lngdecgh6689nn5mgv5yn
ltcmweb1qq20e2arnhvxw97katjkmsd35agw3capxjkrkh7dk8d30rczm8ypxuq329nwh2twmchhqn3jqh7ua4ps539f6aazh79jy76urqht4qa59ts3at6gf
btg1qufmped88t65gh7vn9ftzjwlx9tf5a3en692wvq dgb1q00002724tefpjkpn8mp233uyqwd8hnny55e0zg
cosmos1qqqsyqcyq5rqwzqfpg9scrgwpugpzysnrk363e osmo1qqqsyqcyq5rqwzqfpg9scrgwpugpzysntdz28t osmo1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqmcn030
cro1yjjlx5qsrj5rxn5xtd5rkm6dcqzlchxkrvsmg6 iota1qpklumdlltn9mkmxmv2j34rtccv06c8eeatqn4fy44a0llzrwzx76t7yjqk
addr1qx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer3n0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgse35a3x
addr1z8phkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gten0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgs9yc0hh
addr1gx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer5pnz75xxcrzqf96k addr128phkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtupnz75xxcrtw79hu
addr1vx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzers66hrl8 addr1w8phkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcyjy7wx
stake1uyehkck0lajq8gr28t9uxnuvgcqrc6070x3k9r8048z8y5gh6ffgw stake178phkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcccycj5
addr_test1gz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer5pnz75xxcrdw5vky
addr_test1qz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer3n0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgs68faae
stake_test1uqehkck0lajq8gr28t9uxnuvgcqrc6070x3k9r8048z8y5gssrtvn
`;

const wordsOf = (text: string): string[] => text.trim().split(/\s+/);

const CODED: [WalletFamily, string][] = [
  ...wordsOf(CASH).map((payload): [WalletFamily, string] => ['cashaddr', `bitcoincash:${payload}`]),
  ...wordsOf(BECH32).map((address): [WalletFamily, string] => ['bech32', address]),
];

it.each(CODED)('%s: %s, also in capitals', (family, address) => {
  const key = address.replace('bitcoincash:', '');
  for (const spelling of [address, address.toUpperCase()]) {
    expect(parseWallet(spelling)).toEqual({ family, key, tag: undefined, problem: undefined });
  }
});

/** EIP-55. */
const EVM = `
0x52908400098527886E0F7030069857D2E4169EE7 0x8617E340B3D01FA5F11F306F4090FD50E238070D 0xde709f2102306220921060314715629080e2fb77
0x27b1fdb04752bbc536007a920d24acb045561c26 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed 0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359
0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB 0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb
`;

/** What other networks' programs are tested with. Some begin like addresses of a family that they are not of. */
const OTHERS = `
1BpEi6DfDAUFd7GtittLSdBeYJvcoaVggu 3CWFddi6m4ndiGyKqzYvsFYagqDLPVMTzC 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa mzBc4XEFSdzCDcTxAgf6EZXgsZWpztRhef
LYhttvnKawAv6RcHQ4eBkNtifuiEA99PFe DH5yaieqoZN36fDVciNyRueRGvGLR3mr7L XjszN1jZJthEoaQDhGthRkaHL9AqaG3Vzw BC1LLYoE4mTCHTJhVYvLGxhRTwAHyWTQ49
TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t TFEkshkSXo8yMe8vcA6P77XmiLfstNWHyT t1U9yhDa5XEjgfnTgZoKddeSiEN1aoLkQxq znhiGGfYRepxkBjXYvA2kFrXiC351i9ta4z
DsUZxxoHJSty8DCfwfartwTYbuhmVct7tJu tz1Lhf4J9Qxoe3DZ2nfe8FGDnvVj7oKjnMY6 3P93mVrYnQ4ahaRMYwA2BeWY32eDxTpLVEs bDb6NmobyDVeNGpizWQQBZkYjKCRQBdKdG
833XorXTTx5iya5B3Tr6iqEs9GbRuvVfwyLCP2vpdzhq So11111111111111111111111111111111111111112 AR4QmqYENiZAD6oXe7ftm6eDcwtHk7rVTT
37btjrVyb4KDXBNC4haBVPCrro8AQPHwvCMp3RFhhSVWwfFmZ6wwzSK6JK1hY6wHNmtrpTf1kdbva8TCneM2YsiXT7mrzT21EacHnPpz5YyUdj64na
Ae2tdPwUPEYzs5BRbGcoS3DXvK8mwgggmESz4HqUwMyaS9eNksZGz1LMS9v nano_1q79ahdr36uqn38p5tp5sqwkn73rnpj1k8obtuetdbjcx37d5gahhd1u9cuh
xrb_1111111111111111111111111111111111111111111111111111hifc8npp NBZMQO7ZPBYNBDUR7F75MAKA2S3DHDCIFG775N3D
GBBM6BKZPEHWYO3E3YKREDPQXMS4VK35YLNU7NFBRI26RAN7GI5POFBB GONISIUAYDOMHM7VURRAAAP5H6OAWRRBCPXEIOZO3QI7TZKR5GTAQ7WK7Y
1iQPKJmghHbrRhUiMt2cNEuxYbR6S9vYtJKqYvE4PNR9WDB 5CK8D1sKNwF473wbuBP6NuhQfPaWUetNsWUNAAzVwTfxqjfr CpjsLDC1JFyrhm3ftC9Gs4QoyrkHKhZKtK7YqGTRFtTafgp
47zQ5LAivg6hNCgijXSEFVLX7mke1bgM6YGLFaANDoJbgXDymcAAZvvMNt2PmMpqEe5qRy2zyfMYXdwpmdyitiFh84xnPG2 469226551L bittrexacct1 0.0.12345
`;

it.each([...wordsOf(EVM), ...wordsOf(OTHERS)])('takes %s as its network writes it', (address) => {
  const { key, tag, problem } = parseWallet(address);
  const whole = address.startsWith('0x') ? address.toLowerCase() : address;
  expect([problem, tag, key]).toEqual([undefined, undefined, whole]);
});

/** BIP-350. */
const WRONG = `
bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqh2y7hd tb1z0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqglt7rf
BC1S0XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ54WELL bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kemeawh
tb1q0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq24jc47 bc1p38j9r5y49hruaue7wxjce0updqjuyyx0kh56v8s25huc6995vvpql3jow4
tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq47Zagq
`;

it.each(wordsOf(WRONG))('refuses %s', (address) => {
  expect(parseWallet(address).problem).toBeDefined();
});
